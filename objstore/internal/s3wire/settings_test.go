package s3wire

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

// answered is an exchange that ended with a status and a code.
func answered(status int, code string, date string) *Exchange {
	_, ex := NewExchange(context.Background(), OpSettings)
	ex.attempted, ex.connected, ex.status, ex.code = true, true, status, code
	ex.header = http.Header{}
	if date != "" {
		ex.header.Set("Date", date)
	}
	return ex
}

// TestRulesOfASpace: rules count as far as they touch what stands under the prefix.
func TestRulesOfASpace(t *testing.T) {
	space, err := NewSpace("b", "tier")
	if err != nil {
		t.Fatal(err)
	}
	a := NewAsked(space)
	a.Lifecycle(answered(200, "", ""), []Rule{
		{ID: "all", Enabled: true, Expires: true},
		{ID: "off", Expires: true},
		{ID: "inner", Prefix: "tier/obj/", Enabled: true, Transitions: true, AbortsAfterDays: 1},
		{ID: "exact", Prefix: "tier", Enabled: true, AbortsAfterDays: 7},
		{ID: "neighbour", Prefix: "tier2/", Enabled: true, Expires: true, AbortsAfterDays: 2},
		{ID: "slow", Prefix: "t", Enabled: true, AbortsAfterDays: 30},
		{ID: "noncurrent", Enabled: true},
	}, nil)
	got, err := a.Result()
	want := objstore.Settings{
		Expiry:      []objstore.Expiration{{Rule: "all", Action: "expire"}, {Rule: "inner", Prefix: "obj/", Action: "transition"}},
		AbortsAfter: 7 * 24 * time.Hour, Unknown: map[string]error{},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestSettingsAnswers: that nothing is configured is an answer, a refusal is unknown, and
// silence is an error.
func TestSettingsAnswers(t *testing.T) {
	const date = "Mon, 30 Nov 2026 06:00:00 GMT"
	lib := errors.New("the library's error")
	a := NewAsked(Space{Bucket: "b"})
	a.Versioning(answered(403, "AccessDenied", date), "", lib)
	a.ObjectLock(answered(404, "ObjectLockConfigurationNotFoundError", date), false, lib)
	a.Lifecycle(answered(501, "NotImplemented", ""), nil, lib)
	got, err := a.Result()
	if err != nil || !got.Date.Equal(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)) {
		t.Errorf("%v %v", got.Date, err)
	}
	for field, kind := range map[string]error{
		"Versioning": objstore.ErrDenied, "ObjectLock": nil, "Expiry": objstore.ErrUnsupported, "AbortsAfter": objstore.ErrUnsupported,
	} {
		if unknown := got.Unknown[field]; !errors.Is(unknown, kind) {
			t.Errorf("%s: %v, want %v", field, unknown, kind)
		}
	}
	a = NewAsked(Space{Bucket: "b"})
	_, ex := NewExchange(context.Background(), OpSettings)
	ex.attempted = true
	a.Versioning(ex, "", lib)
	if _, err := a.Result(); !errors.Is(err, objstore.ErrUnavailable) {
		t.Errorf("silence: %v", err)
	}
}
