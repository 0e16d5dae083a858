package s3wire

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// OpSettings is how the questions for a bucket's settings are read: as a GET, which
// changes nothing and whose refusal has a document.
const OpSettings = objstore.OpGet

// The names of the questions, in errors.
const (
	VersioningKey = "the bucket's versioning"
	LockKey       = "the bucket's object lock"
	LifecycleKey  = "the bucket's lifecycle"
)

// Rule is a lifecycle rule, as far as it matters here.
type Rule struct {
	ID, Prefix      string // the prefix is the bucket's
	Enabled         bool
	Expires         bool // deletes current versions
	Transitions     bool // moves them to another class
	AbortsAfterDays int  // 0: it aborts no uploads
}

// Asked gathers the answers.
type Asked struct {
	space Space
	got   objstore.Settings
}

// NewAsked is for the settings of a bucket, as they touch what stands in space.
func NewAsked(space Space) *Asked {
	return &Asked{space: space, got: objstore.Settings{Unknown: map[string]error{}}}
}

// Versioning takes the answer to the first question.
func (a *Asked) Versioning(ex *Exchange, status string, err error) {
	a.date(ex)
	if a.known(ex, VersioningKey, err, "Versioning") {
		a.got.Versioning = status
	}
}

// ObjectLock takes the answer to the second.
func (a *Asked) ObjectLock(ex *Exchange, enabled bool, err error) {
	a.date(ex)
	if a.known(ex, LockKey, err, "ObjectLock") {
		a.got.ObjectLock = enabled
	}
}

// Lifecycle takes the answer to the third.
func (a *Asked) Lifecycle(ex *Exchange, rules []Rule, err error) {
	a.date(ex)
	if !a.known(ex, LifecycleKey, err, "Expiry", "AbortsAfter") {
		return
	}
	for _, r := range rules {
		if r.Enabled {
			a.rule(r)
		}
	}
}

// rule enters what touches the space. A rule that only takes a part of it, by tag or by
// size, is entered all the same: any object may be among them. A rule for uploads counts
// only if it covers all of the space.
func (a *Asked) rule(r Rule) {
	covers := strings.HasPrefix(a.space.prefix, r.Prefix)
	if !covers && !strings.HasPrefix(r.Prefix, a.space.prefix) {
		return
	}
	entry := objstore.Expiration{Rule: r.ID, Prefix: strings.TrimPrefix(r.Prefix, a.space.prefix)}
	if covers {
		entry.Prefix = ""
	}
	if r.Expires {
		entry.Action = "expire"
		a.got.Expiry = append(a.got.Expiry, entry)
	}
	if r.Transitions {
		entry.Action = "transition"
		a.got.Expiry = append(a.got.Expiry, entry)
	}
	after := time.Duration(r.AbortsAfterDays) * 24 * time.Hour
	if covers && after > 0 && (a.got.AbortsAfter == 0 || after < a.got.AbortsAfter) {
		a.got.AbortsAfter = after
	}
}

// known enters an answer that is none under its fields, and says whether it is one. That
// nothing is configured is an answer too.
func (a *Asked) known(ex *Exchange, key string, err error, fields ...string) bool {
	err = Verdict(ex, key, err)
	var answer *Answer
	if errors.As(err, &answer) {
		switch answer.Code {
		case "NoSuchLifecycleConfiguration", "ObjectLockConfigurationNotFoundError":
			return true
		}
	}
	if err == nil {
		return true
	}
	for _, f := range fields {
		a.got.Unknown[f] = err
	}
	return false
}

// date takes the store's clock from the latest answer that has one.
func (a *Asked) date(ex *Exchange) {
	if at, err := http.ParseTime(ex.Header().Get("Date")); err == nil {
		a.got.Date = at
	}
}

// Result is what was gathered, or the error of a store that answered nothing at all.
func (a *Asked) Result() (objstore.Settings, error) {
	if a.got.Date.IsZero() && len(a.got.Unknown) > 0 {
		for _, err := range a.got.Unknown {
			return objstore.Settings{}, err // one says it all
		}
	}
	return a.got, nil
}
