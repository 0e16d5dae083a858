package doctor_test

import (
	"context"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

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
