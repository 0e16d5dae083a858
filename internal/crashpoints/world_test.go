package crashpoints_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// world is a tier whose rows are known, so that the end of a test can read them back.
type world struct {
	*audittest.Tier
	rows map[string][]segment.Row
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{Tier: audittest.New(t, memstore.Options{}), rows: map[string][]segment.Row{}}
}

// One row of "large" outgrows stream-object-min, so it gets an object of its own; all
// others share a pack.
var (
	large = audittest.Write{Stream: "large", Rows: 40, Size: 400}
	small = audittest.Write{Stream: "small", Rows: 3, Size: 40}
	other = audittest.Write{Stream: "other", Rows: 2, Size: 40}
	// bulky is most of the pack that it shares: without it, the pack is worth a gc.
	bulky = audittest.Write{Stream: "bulky", Rows: 9, Size: 200}
)

// slot seals, publishes and absorbs a segment, and remembers its rows as the slot has
// them.
func (w *world) slot(writes ...audittest.Write) segment.ID {
	w.T.Helper()
	id := w.Slot(writes...)
	for _, wr := range writes {
		rows := w.read(wr.Stream)
		if want := len(w.rows[wr.Stream]) + wr.Rows; len(rows) != want {
			w.T.Fatalf("%d rows of %q right after the absorb, want %d", len(rows), wr.Stream, want)
		}
		w.rows[wr.Stream] = rows
	}
	return id
}

// drop deletes streams: their rows are not looked for any more.
func (w *world) drop(streams ...string) {
	w.T.Helper()
	for _, s := range streams {
		_, err := w.DB.DeleteStream(w.Ctx(), s)
		w.Must(err)
		delete(w.rows, s)
	}
}

// read is a cold read of a whole stream.
func (w *world) read(stream string) (out []segment.Row) {
	w.T.Helper()
	r, err := coldload.New(w.DB, w.Classes, coldload.Config{Clock: w.Clock.Now})
	w.Must(err)
	for row, err := range r.Rows(w.Ctx(), stream, segment.Pos{}, segment.Pos{}) {
		if err != nil {
			w.T.Fatalf("read %q: %v", stream, err)
		}
		out = append(out, row.Clone())
	}
	return out
}

// isCall matches a verb by its name, and a store call by its operation and the kind of
// key, as "store put settled".
func isCall(what string) func(string) bool {
	op, settled := strings.CutSuffix(what, " settled")
	return func(call string) bool {
		if !settled {
			return call == what || strings.HasSuffix(what, "/") && strings.HasPrefix(call, what)
		}
		key, ok := strings.CutPrefix(call, op+" ")
		return ok && isSettled(key)
	}
}

func isSettled(key string) bool {
	k, err := segment.ParseKey(key)
	return err == nil && (k.Kind == segment.KeyStream || k.Kind == segment.KeyPack)
}

// cutAfter runs an auditor, grace after grace, until it is cut right after the n-th such
// call took effect and its answer was lost: nothing of what it would have done next is.
func (w *world) cutAfter(call string, nth int) {
	w.T.Helper()
	f := &audittest.Faults{Pick: audittest.Cut(nth, isCall(call))}
	f.Start()
	defer f.Heal()
	const graces = 8
	for range graces {
		_, _ = w.AuditorOn("cut", auditor.Config{}, f.Store(w.Tier), f.Catalog(w.Tier)).Once(w.Ctx(), auditor.OnceOptions{}) // its errors are the cut's
		if f.Hit() != "" {
			return
		}
		w.Clock.Advance(audittest.ReadGrace)
	}
	w.T.Fatalf("%d graces, and no cut after %s; calls %v", graces, call, f.Calls())
}

// reruns lets the cut one's leases run out, runs another auditor over what is due then,
// and gives the calls that it made.
func (w *world) reruns() []string {
	w.T.Helper()
	w.Clock.Advance(2 * settle.DefaultLease)
	f := &audittest.Faults{}
	f.Start()
	defer f.Heal()
	_, err := w.AuditorOn("rerun", auditor.Config{}, f.Store(w.Tier), f.Catalog(w.Tier)).Once(w.Ctx(), auditor.OnceOptions{})
	w.Must(err)
	return f.Calls()
}

// count of such calls.
func count(calls []string, call string) (n int) {
	for _, c := range calls {
		if isCall(call)(c) {
			n++
		}
	}
	return n
}

// converges: duties run dry, and then fsck is clean, no marker and no intent stands, the
// bucket holds just the settled objects that refs name, and every row reads back.
func (w *world) converges() {
	w.T.Helper()
	w.Clock.Advance(2 * settle.DefaultLease) // what was cut held leases
	const rounds = 40                        // debts that met each other come due at many times
	w.RunDryIn(rounds)
	w.MustBeClean()
	if slots := w.Slots(); len(slots) > 0 {
		w.T.Errorf("slots %v stand although all is settled", slots)
	}
	if named, stand := w.named(), w.Settled(); !slices.Equal(named, stand) {
		w.T.Errorf("refs name %v, the bucket holds %v", named, stand)
	}
	ups, err := w.Store.ListUploads(w.Ctx(), "")
	w.Must(err)
	if len(ups) > 0 {
		w.T.Errorf("uploads stand: %+v", ups)
	}
	for stream, want := range w.rows {
		w.same(stream, w.read(stream), want)
	}
}

func (w *world) same(stream string, got, want []segment.Row) {
	w.T.Helper()
	if !slices.EqualFunc(got, want, func(a, b segment.Row) bool {
		return a.Seq == b.Seq && a.Time == b.Time && bytes.Equal(a.Payload, b.Payload)
	}) {
		w.T.Errorf("stream %q: %d rows read back, want these %d, byte for byte", stream, len(got), len(want))
	}
}

// named are the keys that refs name, in order.
func (w *world) named() []string {
	w.T.Helper()
	named := []string{}
	var after *catalog.Ref
	for {
		page, err := w.DB.RefsByKey(w.Ctx(), after, 1000)
		w.Must(err)
		if len(page) == 0 {
			slices.Sort(named)
			return slices.Compact(named)
		}
		for i := range page {
			named = append(named, page[i].Key)
		}
		after = &page[len(page)-1].Ref
	}
}

// refsIn are how many refs name slots, and how many settled objects.
func (w *world) refsIn() (slots, settled int) {
	w.T.Helper()
	refs, err := w.DB.RefsByKey(w.Ctx(), nil, 1000)
	w.Must(err)
	for i := range refs {
		if refs[i].Kind == catalog.RefSlot {
			slots++
		} else {
			settled++
		}
	}
	return slots, settled
}

// standing are the keys of intents that stand, in order.
func (w *world) standing() (keys []string) {
	w.T.Helper()
	for _, in := range w.Intents() {
		if in.State == catalog.IntentStanding {
			keys = append(keys, in.Key)
		}
	}
	return keys
}

// marked are how many markers of a duty stand.
func (w *world) marked(d catalog.Duty) int {
	w.T.Helper()
	return len(w.Markers(d))
}
