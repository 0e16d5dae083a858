package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// The fields of objstore.Settings, as they stand in Unknown.
const (
	fieldVersioning = "Versioning"
	fieldLock       = "ObjectLock"
	fieldExpiry     = "Expiry"
	fieldAborts     = "AbortsAfter"
)

const lifecycleExpiryCheck = "lifecycle-expiry"

func settingsChecks() []check {
	return []check{
		{
			name: "versioning", needs: []string{actVersioning}, run: versioning,
			proves: "the bucket keeps no versions",
			breaks: "deletes free nothing: every object ever written stays billed",
		},
		{
			name: "object-lock", needs: []string{actLock}, run: objectLock,
			proves: "the bucket has no object lock",
			breaks: "deletes are refused or hide a version: the auditor frees nothing",
		},
		{
			name: lifecycleExpiryCheck, needs: []string{actLifecycle}, run: lifecycleExpiry,
			proves: "no lifecycle rule takes our objects away",
			breaks: "I1, I2: objects that refs name are deleted, or moved where they cannot be read",
		},
		{
			name: "abort-rule", needs: []string{actLifecycle}, run: abortRule,
			proves: "a lifecycle rule aborts unfinished uploads",
			breaks: "advice: while no auditor runs, the parts of dead uploads are billed",
		},
	}
}

// answer is what the driver said of the bucket, and when.
type answer struct {
	asked         bool
	before, after time.Time // this machine's clock around the question
	settings      objstore.Settings
	err           error
}

// ask asks once.
func (s *session) ask(ctx context.Context) (objstore.Settings, error) {
	a := &s.settings
	if a.asked {
		return a.settings, a.err
	}
	inspector, ok := s.d.Driver.(objstore.Inspector)
	if !ok {
		return objstore.Settings{}, skips("the driver cannot ask for the bucket's settings")
	}
	a.before = s.opts.Clock()
	a.settings, a.err = inspector.Settings(ctx)
	a.after = s.opts.Clock()
	a.asked = a.err == nil
	s.d.remember(func() {
		for field, action := range map[string]string{fieldVersioning: actVersioning, fieldLock: actLock, fieldExpiry: actLifecycle} {
			unknown := a.settings.Unknown[field]
			if errors.Is(unknown, objstore.ErrUnsupported) {
				continue // a store without the setting: nothing was asked, or nothing denied
			}
			s.d.requests[opSettings]++
			s.d.allow(action, errors.Join(a.err, unknown))
		}
	})
	return a.settings, a.err
}

// opSettings counts the questions for the bucket's settings.
const opSettings objstore.Op = "settings"

// field asks, and ends for a field that is not known.
func (t *trial) field(ctx context.Context, name string) (objstore.Settings, error) {
	got, err := t.ask(ctx)
	if err != nil {
		return got, err
	}
	unknown := got.Unknown[name]
	if errors.Is(unknown, objstore.ErrUnsupported) {
		return got, skips("this store has no such setting")
	}
	return got, unknown
}

// accepted: what the flag is there for. Otherwise it is in the way of running.
func (t *trial) accepted(what string) error {
	if t.opts.AcceptVersioned {
		return lacks("%s; accepted by --accept-versioned", what)
	}
	return lies("%s; use a bucket without, or accept it with --accept-versioned", what)
}

func versioning(ctx context.Context, t *trial) error {
	got, err := t.field(ctx, fieldVersioning)
	if err != nil || got.Versioning == "" {
		return err
	}
	return t.accepted("versioning is " + got.Versioning)
}

func objectLock(ctx context.Context, t *trial) error {
	got, err := t.field(ctx, fieldLock)
	if err != nil || !got.ObjectLock {
		return err
	}
	return t.accepted("the bucket has an object lock")
}

func lifecycleExpiry(ctx context.Context, t *trial) error {
	got, err := t.field(ctx, fieldExpiry)
	if err != nil {
		return err
	}
	var found []string
	for _, e := range got.Expiry {
		if strings.HasPrefix(e.Prefix, t.opts.Prefix) {
			continue // it tidies up after us
		}
		found = append(found, fmt.Sprintf("rule %q: %s under %q", e.Rule, e.Action, e.Prefix))
	}
	if len(found) > 0 {
		return lies("%s; remove it, or give Strandline a prefix that it does not cover", strings.Join(found, ", "))
	}
	return nil
}

func abortRule(ctx context.Context, t *trial) error {
	got, err := t.field(ctx, fieldAborts)
	if err != nil {
		return err
	}
	if got.AbortsAfter == 0 {
		return lacks("no rule: the auditor's sweep aborts what is older than the orphan grace; a rule of 7 days is a net under it")
	}
	t.detail = fmt.Sprintf("after %d days", int(got.AbortsAfter.Hours()/24))
	return nil
}
