package doctor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
)

// found holds what the doctor says of a lying store against one check.
func found(t *testing.T, lie func(*liar), check string) (full, quick doctor.Report) {
	t.Helper()
	l := &liar{Driver: newMem()}
	full = mustRun(t, l)
	if res, ok := full.Find(check); !ok || res.Outcome == doctor.Missing {
		t.Fatalf("%s of a sound store: %+v", check, res)
	}
	l = &liar{Driver: newMem()}
	lie(l)
	full = mustRun(t, l)
	quick, err := doctor.Quick(t.Context(), l, opts)
	if err != nil {
		t.Fatal(err)
	}
	if res, ok := full.Find(check); !ok || res.Outcome != doctor.Missing || res.Detail == "" || res.Breaks == "" {
		t.Fatalf("%s: %+v", check, res)
	}
	return full, quick
}

// TestK33DoctorFindsCreationOnIfMatch: found and told, and no reason to refuse, because
// nothing relies on it.
func TestK33DoctorFindsCreationOnIfMatch(t *testing.T) {
	full, quick := found(t, createsAbsent, "replace-absent")
	if !full.OK() || len(quick.Refused()) != 0 {
		t.Errorf("refused: %+v", quick.Refused())
	}
}

// TestK34DoctorFindsBlindCompletes: found by the long and the short form, and refused.
func TestK34DoctorFindsBlindCompletes(t *testing.T) {
	full, quick := found(t, func(l *liar) {
		l.onComplete = func(_ context.Context, c call) error { c.opts.IfNoneMatch = false; return nil }
	}, "complete-once")
	if full.OK() || len(quick.Refused()) != 1 || quick.Refused()[0].Check != "complete-once" {
		t.Errorf("not refused: %+v", quick.Refused())
	}
}

// TestK37DoctorWarnsOfVersions: a bucket that keeps what is deleted, or once did.
func TestK37DoctorWarnsOfVersions(t *testing.T) {
	for _, versioning := range []string{"Enabled", "Suspended"} {
		full, quick := found(t, configured(objstore.Settings{Versioning: versioning}), "versioning")
		if full.OK() || len(quick.Refused()) != 1 || !strings.Contains(quick.Refused()[0].Detail, versioning) {
			t.Errorf("%s: not refused: %+v", versioning, quick.Refused())
		}
		accepted := opts
		accepted.AcceptVersioned = true
		l := &liar{Driver: newMem(), settings: &objstore.Settings{Versioning: versioning}}
		quick, err := doctor.Quick(t.Context(), l, accepted)
		if err != nil || len(quick.Refused()) != 0 || len(quick.Unproven()) != 1 || quick.Unproven()[0].Check != "versioning" {
			t.Errorf("%s, accepted: %v, no warning at the start: %+v", versioning, err, quick.Unproven())
		}
	}
}
