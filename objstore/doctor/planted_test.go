package doctor_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/faultstore"
)

// TestPlantedFaults: each lie is found by name, and nothing else is blamed.
func TestPlantedFaults(t *testing.T) {
	for _, p := range plants() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			l := &liar{Driver: newMem()}
			p.lie(l)
			r := mustRun(t, l)
			for _, res := range r.Results {
				missing := res.Outcome == doctor.Missing
				switch {
				case slices.Contains(p.finds, res.Check) != missing && !slices.Contains(p.also, res.Check) && res.Check != "abort-rule":
					t.Errorf("%s is %s: %s", res.Check, res.Outcome, res.Detail)
				case missing && res.Detail == "":
					t.Errorf("%s: no word about it", res.Check)
				}
			}
			if r.OK() != p.fine {
				t.Errorf("may run: %t", r.OK())
			}
			quick, err := doctor.Quick(t.Context(), l, opts)
			if err != nil {
				t.Fatal(err)
			}
			var refused []string
			for _, res := range quick.Refused() {
				refused = append(refused, res.Check)
			}
			if !slices.Equal(refused, p.quick) {
				t.Errorf("a start refuses %v, want %v", refused, p.quick)
			}
		})
	}
}

// TestAccepted: the flag is for versions and locks only.
func TestAccepted(t *testing.T) {
	l := &liar{Driver: newMem(), settings: &objstore.Settings{Versioning: "Enabled", ObjectLock: true}}
	accepted := opts
	accepted.AcceptVersioned = true
	r, err := doctor.Run(t.Context(), l, accepted)
	if err != nil || !r.OK() {
		t.Errorf("%v %t", err, r.OK())
	}
	if res, _ := r.Find("versioning"); res.Outcome != doctor.Missing {
		t.Errorf("accepted, and not told: %+v", res)
	}
	l.onComplete = func(_ context.Context, c call) error { c.opts.IfNoneMatch = false; return nil }
	if r, err = doctor.Run(t.Context(), l, accepted); err != nil || r.OK() {
		t.Errorf("%v %t", err, r.OK())
	}
}

// TestVersionedWithCare: a bucket that keeps versions keeps a marker for each key deleted,
// absent ones too, and all that a refused start writes, each time.
func TestVersionedWithCare(t *testing.T) {
	most := 0
	l := &liar{Driver: newMem(), settings: &objstore.Settings{Versioning: "Enabled"}}
	l.onDelete = func(keys []string) []string {
		most = max(most, len(keys))
		return keys
	}
	mustRun(t, l)
	if most == 0 || most > 200 {
		t.Errorf("%d keys in one delete", most)
	}
	quick, err := doctor.Quick(t.Context(), l, opts)
	if err != nil || quick.Requests[objstore.OpPut] != 0 {
		t.Errorf("%v, a refused start writes: %v", err, quick.Requests)
	}
}

// TestNarrowed: what was found missing is taken back.
func TestNarrowed(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*liar)
		want func(*objstore.Capabilities)
	}{
		"complete": {
			func(l *liar) {
				l.onComplete = func(_ context.Context, c call) error { c.opts.IfNoneMatch = false; return nil }
			},
			func(c *objstore.Capabilities) { c.ConditionalComplete = false },
		},
		"order":   {unordered, func(c *objstore.Capabilities) { c.OrderedList = false }},
		"source":  {anySource, func(c *objstore.Capabilities) { c.RangeCopy = false }},
		"uploads": {func(l *liar) { l.uploads = func([]objstore.Upload) []objstore.Upload { return nil } }, func(c *objstore.Capabilities) { c.ListUploads = false }},
	} {
		t.Run(name, func(t *testing.T) {
			l := &liar{Driver: newMem()}
			c.lie(l)
			want := l.Capabilities()
			c.want(&want)
			r := mustRun(t, l)
			if r.Capabilities != want || r.Declared() != l.Capabilities() {
				t.Errorf("%+v", r.Capabilities)
			}
			store, err := objstore.New(l, objstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if store.Narrow(r.Capabilities); store.Capabilities() != want {
				t.Errorf("%+v", store.Capabilities())
			}
		})
	}
}

// TestNothingMayBeWritten: what was never made is not told as left behind.
func TestNothingMayBeWritten(t *testing.T) {
	mem := newMem()
	whole := faultstore.Wrap(mem, func(c faultstore.Call) faultstore.Fault {
		if !c.Op.Mutation() {
			return faultstore.Fault{}
		}
		return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrDenied}
	})
	r := mustRun(t, whole)
	if r.OK() || len(r.Left) > 0 {
		t.Errorf("ok %t, left: %v", r.OK(), r.Left)
	}
	empty(t, mem)
}

// TestPermissions: each action that is denied is named, and stands in the way.
func TestPermissions(t *testing.T) {
	for action, ops := range map[string][]objstore.Op{
		"s3:PutObject":                  {objstore.OpPut, objstore.OpCreateUpload},
		"s3:GetObject":                  {objstore.OpGet, objstore.OpHead},
		"s3:ListBucket":                 {objstore.OpList},
		"s3:DeleteObject":               {objstore.OpDelete},
		"s3:AbortMultipartUpload":       {objstore.OpAbort},
		"s3:ListBucketMultipartUploads": {objstore.OpListUploads},
	} {
		t.Run(action, func(t *testing.T) {
			mem := newMem()
			l := &liar{Driver: mem, denied: func(op objstore.Op) bool { return slices.Contains(ops, op) }}
			r := mustRun(t, l)
			for _, res := range r.Results {
				permission := strings.HasPrefix(res.Check, "s3:")
				switch {
				case res.Check == action && res.Outcome != doctor.Denied:
					t.Errorf("%s is %s", res.Check, res.Outcome)
				case permission && res.Check != action && res.Outcome == doctor.Denied:
					t.Errorf("%s is denied, too", res.Check)
				case !permission && res.Outcome == doctor.Denied && !slices.Contains(res.Permissions, action):
					t.Errorf("%s is denied, and does not name %s: %v", res.Check, action, res.Permissions)
				case res.Outcome == doctor.Missing && res.Check != "abort-rule" || res.Outcome == doctor.Failed:
					t.Errorf("%s is %s: %s", res.Check, res.Outcome, res.Detail)
				}
			}
			if r.OK() {
				t.Error("may run")
			}
			quick, err := doctor.Quick(t.Context(), l, opts)
			if err != nil || len(quick.Refused()) > 0 {
				t.Errorf("a start is not refused for it: %v %+v", err, quick.Refused())
			}
			switch action {
			case "s3:DeleteObject":
				if len(r.Left) == 0 {
					t.Error("nothing is said of what could not be removed")
				}
			case "s3:AbortMultipartUpload":
			default:
				empty(t, mem)
			}
		})
	}
	for action, field := range map[string]string{
		"s3:GetBucketVersioning": "Versioning", "s3:GetBucketObjectLockConfiguration": "ObjectLock", "s3:GetLifecycleConfiguration": "Expiry",
	} {
		t.Run(action, func(t *testing.T) {
			denied := &objstore.Error{Op: "get", Key: field, Kind: objstore.ErrDenied}
			r := mustRun(t, &liar{Driver: newMem(), settings: &objstore.Settings{Unknown: map[string]error{field: denied}}})
			if res, _ := r.Find(action); res.Outcome != doctor.Denied || res.Required {
				t.Errorf("%+v", res)
			}
			if !r.OK() {
				t.Error("not being told of settings stands in the way")
			}
		})
	}
}
