package doctor_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
)

// call is what a lie is told about.
type call struct {
	key, id string
	opts    *objstore.PutOptions
	src     *objstore.CopySource
	answer  *said
}

// said is what a call is answered with, after it was made.
type said struct{ err error }

// liar is a driver that lies in the way of real stores. A hook sees each call before it is
// made, may change it, or end it with an error.
type liar struct {
	objstore.Driver
	settings *objstore.Settings // nil: it is no Inspector that knows anything
	asked    error

	onPut      func(context.Context, call) error
	onComplete func(context.Context, call) error
	onCopy     func(call)
	onDelete   func(keys []string) []string // the keys that are really deleted
	results    func([]objstore.DeleteResult) []objstore.DeleteResult
	onList     func(p *string, after *string, limit int)
	page       func(prefix string, p objstore.Page) objstore.Page
	onInfo     func(objstore.Info) objstore.Info
	onGet      func(key string, r *objstore.Range, ifMatch *string)
	uploads    func([]objstore.Upload) []objstore.Upload
	onAbort    func() bool // false: not done, and answered with success
	denied     func(op objstore.Op) bool
}

func (l *liar) deny(op objstore.Op, key string) error {
	if l.denied != nil && l.denied(op) {
		return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrDenied, Err: errors.New("403 AccessDenied")}
	}
	return nil
}

func (l *liar) Settings(context.Context) (objstore.Settings, error) {
	if l.settings == nil {
		return objstore.Settings{Date: time.Now()}, l.asked
	}
	s := *l.settings
	if s.Date.IsZero() {
		s.Date = time.Now()
	}
	return s, l.asked
}

func (l *liar) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := l.deny(objstore.OpPut, key); err != nil {
		return objstore.Info{}, err
	}
	var answer said
	if l.onPut != nil {
		if err := l.onPut(ctx, call{key: key, opts: &opts, answer: &answer}); err != nil {
			return objstore.Info{}, err
		}
	}
	info, err := l.Driver.Put(ctx, key, body, size, opts)
	return info, cmp.Or(answer.err, err)
}

func (l *liar) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if err := l.deny(objstore.OpGet, key); err != nil {
		return nil, objstore.Info{}, err
	}
	if l.onGet != nil {
		l.onGet(key, &r, &ifMatch)
	}
	body, info, err := l.Driver.Get(ctx, key, r, ifMatch)
	if err == nil && l.onInfo != nil {
		info = l.onInfo(info)
	}
	return body, info, err
}

func (l *liar) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := l.deny(objstore.OpHead, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := l.Driver.Head(ctx, key)
	if err == nil && l.onInfo != nil {
		info = l.onInfo(info)
	}
	return info, err
}

func (l *liar) List(ctx context.Context, prefix, after, token string, limit int) (objstore.Page, error) {
	if err := l.deny(objstore.OpList, prefix); err != nil {
		return objstore.Page{}, err
	}
	asked := prefix
	if l.onList != nil {
		l.onList(&prefix, &after, limit)
	}
	page, err := l.Driver.List(ctx, prefix, after, token, limit)
	if err == nil && l.page != nil {
		page = l.page(asked, page)
	}
	return page, err
}

func (l *liar) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if l.denied != nil && l.denied(objstore.OpDelete) { // as AWS does it: inside a 200
		var out []objstore.DeleteResult
		for _, k := range keys {
			out = append(out, objstore.DeleteResult{Key: k, Err: l.deny(objstore.OpDelete, k)})
		}
		return out, nil
	}
	really := keys
	if l.onDelete != nil {
		really = l.onDelete(slices.Clone(keys))
	}
	if _, err := l.Driver.Delete(ctx, really); err != nil {
		return nil, err
	}
	out := make([]objstore.DeleteResult, len(keys))
	for i, k := range keys {
		out[i].Key = k
	}
	if l.results != nil {
		out = l.results(out)
	}
	return out, nil
}

func (l *liar) CreateUpload(ctx context.Context, key string, meta map[string]string) (string, error) {
	if err := l.deny(objstore.OpCreateUpload, key); err != nil {
		return "", err
	}
	return l.Driver.CreateUpload(ctx, key, meta)
}

func (l *liar) CopyPart(ctx context.Context, key, id string, number int, src objstore.CopySource) (objstore.Part, error) {
	if l.onCopy != nil {
		l.onCopy(call{key: key, id: id, src: &src})
	}
	return l.Driver.CopyPart(ctx, key, id, number, src)
}

func (l *liar) Complete(ctx context.Context, key, id string, parts []objstore.Part, opts objstore.PutOptions) (objstore.Info, error) {
	var answer said
	if l.onComplete != nil {
		if err := l.onComplete(ctx, call{key: key, id: id, opts: &opts, answer: &answer}); err != nil {
			return objstore.Info{}, err
		}
	}
	info, err := l.Driver.Complete(ctx, key, id, parts, opts)
	return info, cmp.Or(answer.err, err)
}

func (l *liar) Abort(ctx context.Context, key, id string) error {
	if err := l.deny(objstore.OpAbort, key); err != nil {
		return err
	}
	if l.onAbort != nil && !l.onAbort() {
		return nil
	}
	return l.Driver.Abort(ctx, key, id)
}

func (l *liar) ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error) {
	if err := l.deny(objstore.OpListUploads, prefix); err != nil {
		return nil, err
	}
	ups, err := l.Driver.ListUploads(ctx, prefix)
	if err == nil && l.uploads != nil {
		ups = l.uploads(ups)
	}
	return ups, err
}

// plant is a lie and what must find it.
type plant struct {
	name  string
	lie   func(*liar)
	finds []string // missing, all of them
	also  []string // may be missing, too: the lie reaches them
	fine  bool     // no obstacle to running
	quick []string // refused by a start
}

func plants() []plant {
	return []plant{
		{
			name: "ignores If-None-Match on PUT", finds: []string{"create-once", "create-once-race"}, also: []string{"complete-race"},
			quick: []string{"create-once"},
			lie: func(l *liar) {
				l.onPut = func(_ context.Context, c call) error { c.opts.IfNoneMatch = false; return nil }
			},
		},
		{
			name: "K34 ignores If-None-Match on complete", finds: []string{"complete-once", "complete-race"}, quick: []string{"complete-once"},
			lie: func(l *liar) {
				l.onComplete = func(_ context.Context, c call) error { c.opts.IfNoneMatch = false; return nil }
			},
		},
		{name: "refuses a second PUT and takes it", finds: []string{"create-once"}, also: []string{"create-once-race", "complete-race"}, quick: []string{"create-once"}, lie: takesRefusedPuts},
		{name: "refuses a stale PUT and takes it", finds: []string{"replace"}, also: []string{"replace-race"}, quick: []string{"replace"}, lie: takesStalePuts},
		{name: "refuses a complete and takes it", finds: []string{"complete-once"}, also: []string{"complete-race"}, quick: []string{"complete-once"}, lie: takesRefusedCompletes},
		{
			name: "ignores If-Match", finds: []string{"replace", "replace-absent"}, also: []string{"replace-race"}, quick: []string{"replace"},
			lie: func(l *liar) {
				l.onPut = func(_ context.Context, c call) error { c.opts.IfMatch = ""; return nil }
			},
		},
		{name: "K33 creates on If-Match of an absent key", finds: []string{"replace-absent"}, fine: true, lie: createsAbsent},
		{name: "two winners in a race of PUTs", finds: []string{"create-once-race"}, lie: checksThenPuts},
		{name: "two winners in a race with completes", finds: []string{"complete-race"}, lie: checksThenCompletes},
		{name: "loses an increment", finds: []string{"replace-race"}, lie: checksThenReplaces},
		{name: "K39 unordered listing", finds: []string{"list-order"}, lie: unordered},
		{
			name: "ignores start-after", finds: []string{"list-start-after"},
			lie: func(l *liar) { l.onList = func(_, after *string, _ int) { *after = "" } },
		},
		{name: "loses keys between pages", finds: []string{"list-pages"}, lie: losesPages},
		{
			name: "K38 a prefix hits its neighbour", finds: []string{"list-prefix"},
			lie: func(l *liar) {
				l.onList = func(p, _ *string, _ int) {
					if strings.HasSuffix(*p, "p/1/") {
						*p = strings.TrimSuffix(*p, "/")
					}
				}
			},
		},
		{name: "stale listing", finds: []string{"list-after-write"}, also: []string{"list-order", "list-start-after", "list-pages", "list-prefix"}, quick: []string{"list-after-write"}, lie: staleListing},
		{
			name: "copies the wrong range", finds: []string{"range-copy", "range-copy-small"},
			lie: func(l *liar) { l.onCopy = func(c call) { c.src.Offset = 0 } },
		},
		{name: "ignores the condition on a copy's source", finds: []string{"range-copy-stale"}, lie: anySource},
		{
			name: "K35 drops per-key delete errors", finds: []string{"bulk-delete"},
			lie: func(l *liar) {
				l.onDelete = func(keys []string) []string {
					if len(keys) < 100 {
						return keys
					}
					return keys[1:]
				}
			},
		},
		{
			name: "forgets keys in the answer to a delete", finds: []string{"bulk-delete"},
			lie: func(l *liar) {
				l.results = func(r []objstore.DeleteResult) []objstore.DeleteResult { return r[:min(len(r), 500)] }
			},
		},
		{name: "K30 serves deleted bytes", finds: []string{"delete-visible"}, lie: undead},
		{
			name: "loses metadata", finds: []string{"metadata", "complete"},
			lie: func(l *liar) { l.onInfo = func(i objstore.Info) objstore.Info { i.Meta = nil; return i } },
		},
		{
			name: "HEAD tells another size", finds: []string{"head"}, also: []string{"range-middle", "range-suffix"},
			lie: func(l *liar) { l.onInfo = func(i objstore.Info) objstore.Info { i.Size++; return i } },
		},
		{
			name: "ignores If-Match on reads", finds: []string{"get-if-match"},
			lie: func(l *liar) { l.onGet = func(_ string, _ *objstore.Range, ifMatch *string) { *ifMatch = "" } },
		},
		{
			name: "a suffix is read from the start", finds: []string{"range-suffix"},
			lie: func(l *liar) {
				l.onGet = func(_ string, r *objstore.Range, _ *string) {
					if r.Offset < 0 {
						*r = objstore.Range{Offset: 0, Length: -r.Offset}
					}
				}
			},
		},
		{
			name: "a range beyond the end is the whole", finds: []string{"range-beyond"},
			lie: func(l *liar) {
				l.onGet = func(_ string, r *objstore.Range, _ *string) {
					if r.Offset == 100 {
						*r = objstore.Whole
					}
				}
			},
		},
		{
			name: "a range is one byte off", finds: []string{"range-middle"}, also: []string{"range-suffix"},
			lie: func(l *liar) {
				l.onGet = func(_ string, r *objstore.Range, _ *string) {
					if r.Length > 0 && r.Offset == 3 {
						r.Offset++
					}
				}
			},
		},
		{
			name: "hides uploads", finds: []string{"uploads-by-key", "uploads-by-prefix"},
			lie: func(l *liar) { l.uploads = func([]objstore.Upload) []objstore.Upload { return nil } },
		},
		{name: "K36 an abort that does nothing", finds: []string{"abort-twice", "uploads-by-key"}, lie: noAbort},
		{name: "K37 keeps versions", finds: []string{"versioning"}, quick: []string{"versioning"}, lie: configured(objstore.Settings{Versioning: "Enabled"})},
		{name: "K37 kept versions once", finds: []string{"versioning"}, quick: []string{"versioning"}, lie: configured(objstore.Settings{Versioning: "Suspended"})},
		{name: "locked", finds: []string{"object-lock"}, quick: []string{"object-lock"}, lie: configured(objstore.Settings{ObjectLock: true})},
		{
			name: "a lifecycle rule expires objects", finds: []string{"lifecycle-expiry"},
			lie: configured(objstore.Settings{Expiry: []objstore.Expiration{{Rule: "tidy", Prefix: "seg/", Action: "expire"}}}),
		},
		{
			name: "a lifecycle rule for the doctor's own keys", fine: true,
			lie: configured(objstore.Settings{Expiry: []objstore.Expiration{{Rule: "tidy", Prefix: prefix, Action: "expire"}}}),
		},
		{
			name: "no rule aborts uploads", fine: true, finds: []string{"abort-rule"},
			lie: configured(objstore.Settings{AbortsAfter: -1}),
		},
		{
			name: "K40 a clock 10 s ahead", finds: []string{"clock-close"}, fine: true,
			lie: func(l *liar) { l.settings = &objstore.Settings{Date: time.Now().Add(10 * time.Second)} },
		},
		{
			name: "K40 a clock 20 min behind", finds: []string{"clock", "clock-close"}, quick: []string{"clock"},
			lie: func(l *liar) { l.settings = &objstore.Settings{Date: time.Now().Add(-20 * time.Minute)} },
		},
	}
}

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

func configured(s objstore.Settings) func(*liar) {
	return func(l *liar) {
		if s.AbortsAfter == 0 {
			s.AbortsAfter = 7 * 24 * time.Hour
		}
		s.AbortsAfter = max(s.AbortsAfter, 0)
		l.settings = &s
	}
}

// takesRefusedPuts, and the next two: the store overwrites, and says that it did not.
func takesRefusedPuts(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if c.opts.IfNoneMatch && !l.absent(ctx, c.key) {
			c.opts.IfNoneMatch, c.answer.err = false, objstore.ErrExists
		}
		return nil
	}
}

func takesStalePuts(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if info, err := l.Driver.Head(ctx, c.key); err == nil && c.opts.IfMatch != "" && info.ETag != c.opts.IfMatch {
			c.opts.IfMatch, c.answer.err = "", objstore.ErrPrecondition
		}
		return nil
	}
}

func takesRefusedCompletes(l *liar) {
	l.onComplete = func(ctx context.Context, c call) error {
		if c.opts.IfNoneMatch && !l.absent(ctx, c.key) {
			c.opts.IfNoneMatch, c.answer.err = false, objstore.ErrExists
		}
		return nil
	}
}

func createsAbsent(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if _, err := l.Driver.Head(ctx, c.key); errors.Is(err, objstore.ErrNotFound) {
			c.opts.IfMatch = ""
		}
		return nil
	}
}

// together makes the writers of one key wait for each other between the look and the
// act, as a store does that does not lock: the first n that come act together.
type together struct {
	mu   sync.Mutex
	n    int
	came map[string]chan struct{}
	have map[string]int
}

func newTogether(n int) *together {
	return &together{n: n, came: map[string]chan struct{}{}, have: map[string]int{}}
}

func (g *together) wait(key string) {
	g.mu.Lock()
	if g.came[key] == nil {
		g.came[key] = make(chan struct{})
	}
	ch := g.came[key]
	if g.have[key]++; g.have[key] == g.n {
		close(ch)
	}
	g.mu.Unlock()
	<-ch
}

func (l *liar) absent(ctx context.Context, key string) bool {
	_, err := l.Driver.Head(ctx, key)
	return errors.Is(err, objstore.ErrNotFound)
}

func checksThenPuts(l *liar) {
	g := newTogether(16)
	l.onPut = func(ctx context.Context, c call) error {
		if strings.Contains(c.key, "create-once-race") {
			absent := l.absent(ctx, c.key)
			g.wait(c.key)
			c.opts.IfNoneMatch = !absent
		}
		return nil
	}
}

func checksThenCompletes(l *liar) {
	g := newTogether(16)
	race := func(ctx context.Context, c call) error {
		if strings.Contains(c.key, "complete-race") && c.opts.IfNoneMatch {
			absent := l.absent(ctx, c.key)
			g.wait(c.key)
			c.opts.IfNoneMatch = !absent
		}
		return nil
	}
	l.onPut, l.onComplete = race, race
}

// checksThenReplaces holds the first writer of the counter between the look at its condition
// and the write, until another has written.
func checksThenReplaces(l *liar) {
	var first sync.Map
	l.onPut = func(ctx context.Context, c call) error {
		if !strings.Contains(c.key, "replace-race") || c.opts.IfMatch == "" {
			return nil
		}
		if _, held := first.LoadOrStore(c.key, true); held {
			return nil
		}
		for ctx.Err() == nil {
			if info, err := l.Driver.Head(ctx, c.key); err == nil && info.ETag != c.opts.IfMatch {
				break
			}
			runtime.Gosched()
		}
		c.opts.IfMatch = ""
		return nil
	}
}

func unordered(l *liar) {
	l.page = func(_ string, p objstore.Page) objstore.Page {
		slices.Reverse(p.Objects)
		return p
	}
}

// losesPages drops the first key of every page but the first.
func losesPages(l *liar) {
	l.page = func(_ string, p objstore.Page) objstore.Page {
		if p.Next != "" && len(p.Objects) == 2 {
			p.Objects = p.Objects[:1]
		}
		return p
	}
}

// staleListing shows a key only from the third listing after it was first there.
func staleListing(l *liar) {
	var mu sync.Mutex
	shown := map[string]int{}
	l.page = func(_ string, p objstore.Page) objstore.Page {
		mu.Lock()
		defer mu.Unlock()
		p.Objects = slices.DeleteFunc(p.Objects, func(o objstore.Info) bool {
			shown[o.Key]++
			return shown[o.Key] < 3
		})
		return p
	}
}

func anySource(l *liar) {
	l.onCopy = func(c call) {
		if info, err := l.Driver.Head(context.Background(), c.src.Key); err == nil {
			c.src.ETag = info.ETag
		}
	}
}

// undead remembers the first bytes of the key that delete-visible works on.
func undead(l *liar) {
	inner := &cached{Driver: l.Driver, bytes: map[string][]byte{}}
	l.Driver = inner
}

type cached struct {
	objstore.Driver
	mu    sync.Mutex
	bytes map[string][]byte
	infos map[string]objstore.Info
}

func (c *cached) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if !strings.Contains(key, "delete-visible") {
		return c.Driver.Get(ctx, key, r, ifMatch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.infos == nil {
		c.infos = map[string]objstore.Info{}
	}
	if b, ok := c.bytes[key]; ok {
		return io.NopCloser(bytes.NewReader(b)), c.infos[key], nil
	}
	body, info, err := c.Driver.Get(ctx, key, r, ifMatch)
	if err != nil {
		return nil, info, err
	}
	b, err := io.ReadAll(body)
	c.bytes[key], c.infos[key] = b, info
	return io.NopCloser(bytes.NewReader(b)), info, errors.Join(err, body.Close())
}

// noAbort answers the aborts of two checks with success and does nothing.
func noAbort(l *liar) {
	l.onAbort = func() bool { return false }
}
