package localtier

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// model is a shard in ten lines: what the log, its index, its consumers and producers,
// recovery, publishing, housekeeping and takeovers must look like from outside.
type model struct {
	rows      []ShardRow // rows[i] has seq i+1
	cursors   map[string]segment.Seq
	producers map[string]segment.Producer
	watermark segment.Seq
}

func (m *model) append(stream string, rows []segment.Row) (first, last segment.Seq) {
	first = m.end()
	for _, r := range rows {
		r.Seq = m.end()
		m.rows = append(m.rows, ShardRow{stream, r})
	}
	return first, m.end() - 1
}

func (m *model) end() segment.Seq { return segment.Seq(len(m.rows) + 1) }

// read gives the rows of [from, to] above the watermark; stream "" is all.
func (m *model) read(stream string, from, to segment.Seq) (out []ShardRow) {
	for _, r := range m.rows {
		if r.Seq >= max(from, m.watermark+1) && (to == 0 || r.Seq <= to) && (stream == "" || r.Stream == stream) {
			out = append(out, r)
		}
	}
	return out
}

// duel is a shard log and its model, and the operations that both are given.
type duel struct {
	*world
	rng     *rand.Rand
	disk    *powercut.FS
	dirs    int // directories used so far: the last one is the writer's
	wr      *Writer
	cold    *coldload.Reader
	models  []*model
	n       int    // rows made so far
	hydrate bool   // everything comes back to a new disk
	raised  bool   // retention gave up something
	doing   string // the operation, for messages
}

const duelStreams, duelConsumers, duelProducers = 6, 3, 2

// TestDifferential gives the same random operations to a writer and to the model, and
// compares whatever can be seen of either: seqs, answers, refusals, rows by stream and by
// shard, cursors, lags, pulls, before and after restarts, crashes, power cuts and takeovers.
func TestDifferential(t *testing.T) {
	seeds := 200
	if raceEnabled {
		seeds = 50
	}
	// Several at once: they mostly wait for the catalog's disk.
	var next, raised atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for seed := int(next.Add(1) - 1); seed < seeds; seed = int(next.Add(1) - 1) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					if runDuel(t, uint64(seed)) { //nolint:gosec // small
						raised.Add(1)
					}
				})
			}
		})
	}
	wg.Wait()
	if raised.Load() < int64(seeds/10) {
		t.Errorf("retention gave up rows in %d of %d runs: too few to say anything of it", raised.Load(), seeds)
	}
}

// runDuel says whether retention gave up rows in it.
func runDuel(t *testing.T, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 3))
	d := &duel{world: newWorld(t, uint32(1+rng.IntN(2))), rng: rng, disk: powercut.New(), hydrate: seed%2 == 0}
	for range d.topo.Shards {
		d.models = append(d.models, &model{cursors: map[string]segment.Seq{}, producers: map[string]segment.Producer{}})
	}
	var err error
	d.cold, err = coldload.New(d.cat, objstore.Classes{string(segment.ClassStandard): d.set}, coldload.Config{PlanRefs: 3})
	if err != nil {
		t.Fatal(err)
	}
	d.start()
	for i := range 40 {
		d.step()
		if t.Failed() {
			t.Fatalf("seed %d, step %d: %s", seed, i, d.doing)
		}
	}
	d.doing = "at the end"
	d.mustClose(d.wr)
	d.start()
	d.readAll()
	d.mustClose(d.wr)
	d.fsck()
	return d.raised
}

func (d *duel) start() {
	d.wr = d.open(fmt.Sprint("w", d.dirs), func(o *Options) { o.Config.WAL.FS, o.Config.HydrateAll = d.disk, d.hydrate })
}

// ops are the operations by weight.
var ops = []struct {
	name   string
	weight int
	do     func(*duel)
}{
	{"append", 14, (*duel).opAppend},
	{"append by several", 4, (*duel).opAppendSeveral},
	{"append as a producer", 10, (*duel).opAppendAs},
	{"create a consumer", 4, (*duel).opCreate},
	{"acknowledge", 6, (*duel).opAck},
	{"remove a consumer", 2, (*duel).opRemove},
	{"list consumers", 4, (*duel).opConsumers},
	{"pull", 10, (*duel).opPull},
	{"read a stream", 12, (*duel).opRead},
	{"scan a shard", 8, (*duel).opScan},
	{"open read-only", 3, (*duel).opReadOnly},
	{"flush", 6, (*duel).opFlush},
	{"housekeep", 6, (*duel).opHousekeep},
	{"restart", 3, (*duel).opRestart},
	{"crash", 3, (*duel).opCrash},
	{"cut the power", 3, (*duel).opPowerCut},
	{"move to another disk", 2, (*duel).opMove},
	{"retain", 4, (*duel).opRetain},
}

func (d *duel) step() {
	sum := 0
	for _, op := range ops {
		sum += op.weight
	}
	pick := d.rng.IntN(sum)
	for _, op := range ops {
		if pick -= op.weight; pick < 0 {
			d.doing = op.name
			op.do(d)
			return
		}
	}
}

func (d *duel) stream() string   { return fmt.Sprint("stream-", d.rng.IntN(duelStreams)) }
func (d *duel) consumer() string { return fmt.Sprint("consumer-", d.rng.IntN(duelConsumers)) }
func (d *duel) shard() segment.Shard {
	return segment.Shard(d.rng.IntN(len(d.models))) //nolint:gosec // one or two
}

func (d *duel) of(stream string) (segment.Shard, *model) {
	shard := segment.ShardOf(stream, d.topo.Shards)
	return shard, d.models[shard]
}

func (d *duel) ack() Ack {
	if d.rng.IntN(4) == 0 {
		return AckShared
	}
	return AckLocal
}

func (d *duel) rows() []segment.Row {
	rows := make([]segment.Row, 1+d.rng.IntN(4))
	for i := range rows {
		d.n++
		rows[i] = segment.Row{Time: int64(d.n), Payload: fmt.Appendf(nil, "row %d", d.n)}
		if d.rng.IntN(3) == 0 {
			rows[i].Txn = fmt.Appendf(nil, "txn %d", d.n)
		}
		if d.rng.IntN(20) == 0 {
			rows[i].Payload = append(rows[i].Payload, strings.Repeat("x", d.rng.IntN(20_000))...)
		}
	}
	return rows
}

// from is a seq of the shard, or a little beyond its rows.
func (d *duel) from(m *model) segment.Seq { return segment.Seq(1 + d.rng.IntN(len(m.rows)+3)) } //nolint:gosec // small

func (d *duel) failf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf(d.doing+": "+format, args...)
}

// sameErr: both refuse with the same kind, or neither does.
func (d *duel) sameErr(got, want error) bool {
	d.t.Helper()
	if (got == nil) != (want == nil) || (want != nil && !errors.Is(got, want)) {
		d.failf("%v, the model says %v", got, want)
	}
	return want == nil
}

func (d *duel) sameRows(got, want []ShardRow) {
	d.t.Helper()
	same := func(a, b ShardRow) bool {
		return a.Stream == b.Stream && a.Seq == b.Seq && a.Time == b.Time && string(a.Txn) == string(b.Txn) && string(a.Payload) == string(b.Payload)
	}
	if !slices.EqualFunc(got, want, same) {
		seqs := func(rows []ShardRow) (out []string) {
			for _, r := range rows {
				out = append(out, fmt.Sprintf("%d:%s", r.Seq, r.Stream))
			}
			return out
		}
		d.failf("rows %v, the model has %v", seqs(got), seqs(want))
	}
}

func (d *duel) sameResult(got Result, shard segment.Shard, first, last segment.Seq) {
	d.t.Helper()
	want := Result{Epoch: 1, Shard: shard, Term: d.wr.shards[shard].term, First: first, Last: last}
	if got != want {
		d.failf("%+v, the model says %+v", got, want)
	}
}

func (d *duel) opAppend() {
	stream, rows := d.stream(), d.rows()
	shard, m := d.of(stream)
	got, err := d.wr.Append(d.t.Context(), stream, slices.Clone(rows), d.ack())
	if d.sameErr(err, nil) {
		first, last := m.append(stream, rows)
		d.sameResult(got, shard, first, last)
	}
}

// opAppendSeveral appends at once; the model takes them in the order that they got.
func (d *duel) opAppendSeveral() {
	type call struct {
		stream string
		rows   []segment.Row
		got    Result
		err    error
	}
	calls := make([]call, 2+d.rng.IntN(5))
	var wg sync.WaitGroup
	for i := range calls {
		c, ack := &calls[i], d.ack()
		c.stream, c.rows = d.stream(), d.rows()
		wg.Go(func() { c.got, c.err = d.wr.Append(d.t.Context(), c.stream, slices.Clone(c.rows), ack) })
	}
	wg.Wait()
	slices.SortFunc(calls, func(a, b call) int { return int(a.got.First) - int(b.got.First) }) //nolint:gosec // small
	for _, c := range calls {
		if d.sameErr(c.err, nil) {
			shard, m := d.of(c.stream)
			first, last := m.append(c.stream, c.rows)
			d.sameResult(c.got, shard, first, last)
		}
	}
}

// opAppendAs is a producer's next append, its last one again or other rows under its
// number, an older one, or one too far. Producers stay with one stream, as their numbers are a shard's.
func (d *duel) opAppendAs() {
	n := d.rng.IntN(duelProducers)
	id, stream := fmt.Sprint("producer-", n), fmt.Sprint("stream-", n)
	shard, m := d.of(stream)
	last, known := m.producers[id]
	p, rows := Producer{ID: id, Sequence: last.Sequence + 1}, d.rows()
	again := false
	var want error
	switch pick := d.rng.IntN(8); {
	case !known:
		p.Sequence = uint64(1 + d.rng.IntN(100)) //nolint:gosec // small
	case pick < 3:
		p.Sequence, again = last.Sequence, true
		n := int(last.Last - last.First + 1)
		if rows = slices.Repeat(rows, n)[:n]; pick == 0 {
			rows, want = append(rows, rows[0]), ErrSequence // others under its number
		}
	case pick == 3 && last.Sequence > 1:
		p.Sequence, want = last.Sequence-1, ErrSequence
	case pick == 4:
		p.Sequence, want = last.Sequence+2, ErrSequence
	}
	got, err := d.wr.AppendAs(d.t.Context(), p, stream, slices.Clone(rows), d.ack())
	if !d.sameErr(err, want) {
		return
	}
	if !again {
		first, lastSeq := m.append(stream, rows)
		m.producers[id] = segment.Producer{ID: id, Sequence: p.Sequence, First: first, Last: lastSeq}
	}
	d.sameResult(got, shard, m.producers[id].First, m.producers[id].Last)
}

func (d *duel) status(m *model, name string) ConsumerStatus {
	return ConsumerStatus{Name: name, Cursor: m.cursors[name], Lag: uint64(m.end() - 1 - m.cursors[name])}
}

func (d *duel) sameStatus(got ConsumerStatus, m *model, name string) {
	d.t.Helper()
	if want := d.status(m, name); got != want {
		d.failf("%+v, the model says %+v", got, want)
	}
}

func (d *duel) opCreate() {
	shard, name := d.shard(), d.consumer()
	m := d.models[shard]
	after := d.from(m) - 1
	got, err := d.wr.CreateConsumer(d.t.Context(), shard, name, after)
	if d.sameErr(err, nil) {
		if _, stands := m.cursors[name]; !stands {
			m.cursors[name] = max(m.watermark, min(after, m.end()-1))
		}
		d.sameStatus(got, m, name)
	}
}

func (d *duel) opAck() {
	shard, name := d.shard(), d.consumer()
	d.ackAt(shard, name, d.from(d.models[shard])-1)
}

func (d *duel) ackAt(shard segment.Shard, name string, seq segment.Seq) {
	d.t.Helper()
	m := d.models[shard]
	got, err := d.wr.Ack(d.t.Context(), shard, name, seq)
	var want error
	if _, stands := m.cursors[name]; !stands {
		want = ErrNoConsumer
	} else if seq >= m.end() {
		want = ErrInvalid
	}
	if d.sameErr(err, want) {
		m.cursors[name] = max(m.cursors[name], seq)
		d.sameStatus(got, m, name)
	}
}

func (d *duel) opRemove() {
	shard, name := d.shard(), d.consumer()
	m := d.models[shard]
	var want error
	if _, stands := m.cursors[name]; !stands {
		want = ErrNoConsumer
	}
	if d.sameErr(d.wr.RemoveConsumer(d.t.Context(), shard, name), want) {
		delete(m.cursors, name)
	}
}

func (d *duel) opConsumers() {
	shard := d.shard()
	m := d.models[shard]
	got, err := d.wr.Consumers(d.t.Context(), shard)
	if !d.sameErr(err, nil) {
		return
	}
	var want []ConsumerStatus
	for name := range m.cursors {
		want = append(want, d.status(m, name))
	}
	slices.SortFunc(want, func(a, b ConsumerStatus) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(got, want) {
		d.failf("%+v, the model has %+v", got, want)
	}
}

// opPull pulls, and mostly acknowledges what it got.
func (d *duel) opPull() {
	shard, name, limit := d.shard(), d.consumer(), 1+d.rng.IntN(12)
	m := d.models[shard]
	got, err := d.wr.Pull(d.t.Context(), shard, name, limit)
	if _, stands := m.cursors[name]; !stands {
		m.cursors[name] = m.watermark
	}
	want := m.read("", m.cursors[name]+1, 0)
	var not *NotLocalError
	if errors.As(err, &not) {
		// What is not here any more comes from the bucket.
		got = d.coldScan(shard, m.cursors[name]+1, not.First-1)
		want = m.read("", m.cursors[name]+1, not.First-1)
	} else if d.sameErr(err, nil) {
		want = want[:min(limit, len(want))]
	}
	d.sameRows(got, want)
	if len(got) > 0 && d.rng.IntN(4) > 0 {
		d.ackAt(shard, name, got[len(got)-1].Seq)
	}
}

func (d *duel) opRead() {
	stream := d.stream()
	_, m := d.of(stream)
	from, to := d.from(m), segment.Seq(0)
	if d.rng.IntN(2) == 0 {
		to = d.from(m)
	}
	d.readStream(m, stream, from, to)
}

// readStream reads as a server does: local rows, and the bucket's before them.
func (d *duel) readStream(m *model, stream string, from, to segment.Seq) {
	d.t.Helper()
	var got []ShardRow
	err := error(nil)
	for row, rerr := range d.wr.Read(d.t.Context(), stream, from, to) {
		if err = rerr; err == nil {
			got = append(got, ShardRow{stream, row})
		}
	}
	var not *NotLocalError
	if errors.As(err, &not) && len(got) == 0 && not.First > from {
		before := not.First - 1
		if to != 0 {
			before = min(before, to)
		}
		got = d.coldRead(m, stream, from, before)
		if to == 0 || not.First <= to {
			for row, rerr := range d.wr.Read(d.t.Context(), stream, not.First, to) {
				if err = rerr; err != nil {
					d.failf("from %d, where local rows begin: %v", not.First, err)
				}
				got = append(got, ShardRow{stream, row})
			}
		}
	} else {
		d.sameErr(err, nil)
	}
	d.sameRows(got, m.read(stream, from, to))
}

// coldRead reads a stream from the bucket. Below the watermark it is trimmed.
func (d *duel) coldRead(m *model, stream string, from, to segment.Seq) (out []ShardRow) {
	d.t.Helper()
	at := func(seq segment.Seq) segment.Pos { return segment.Pos{Epoch: 1, Seq: seq} }
	for row, err := range d.cold.Rows(d.t.Context(), stream, at(from), at(to)) {
		switch {
		case errors.Is(err, catalog.ErrNotFound):
			return nil // nothing of it was absorbed
		case errors.Is(err, coldload.ErrTrimmed):
			if from > m.watermark {
				d.failf("from %d: %v, the model's watermark is %d", from, err, m.watermark)
			}
			if to <= m.watermark {
				return nil
			}
			return d.coldRead(m, stream, m.watermark+1, to)
		case err != nil:
			d.failf("from the bucket: %v", err)
		}
		out = append(out, ShardRow{stream, row.Clone()})
	}
	return out
}

func (d *duel) opScan() {
	shard := d.shard()
	m := d.models[shard]
	from, to := d.from(m), segment.Seq(0)
	if d.rng.IntN(2) == 0 {
		to = d.from(m)
	}
	d.scanShard(shard, from, to)
}

func (d *duel) scanShard(shard segment.Shard, from, to segment.Seq) {
	d.t.Helper()
	m := d.models[shard]
	got, err := collectShard(d.wr.ReadShard(d.t.Context(), shard, from, to))
	var not *NotLocalError
	if errors.As(err, &not) && len(got) == 0 && not.First > from {
		before := not.First - 1
		if to != 0 {
			before = min(before, to)
		}
		got = d.coldScan(shard, from, before)
		if to == 0 || not.First <= to {
			rest, err := collectShard(d.wr.ReadShard(d.t.Context(), shard, not.First, to))
			d.sameErr(err, nil)
			got = append(got, rest...)
		}
	} else {
		d.sameErr(err, nil)
	}
	d.sameRows(got, m.read("", from, to))
}

// coldScan reads [from, to] of a shard from the bucket.
func (d *duel) coldScan(shard segment.Shard, from, to segment.Seq) (out []ShardRow) {
	d.t.Helper()
	if from > to {
		return nil
	}
	chain := segment.Chain{Epoch: 1, Shard: shard}
	for row, err := range d.cold.Scan(d.t.Context(), chain, from) {
		if errors.Is(err, coldload.ErrTrimmed) && from <= d.models[shard].watermark {
			return d.coldScan(shard, d.models[shard].watermark+1, to)
		}
		if err != nil {
			d.failf("from the bucket: %v", err)
		}
		if row.Seq > to {
			break
		}
		out = append(out, ShardRow{row.Stream, row.Row})
	}
	return out
}

func (d *duel) opReadOnly() {
	shard := d.shard()
	m := d.models[shard]
	ro, err := openReadOnly(d.t.Context(), d.wr.shards[shard].dir, d.disk)
	if !d.sameErr(err, nil) {
		return
	}
	first, next := ro.Local()
	if next != m.end() {
		d.failf("the directory ends before seq %d, the model before %d", next, m.end())
	}
	stream, from := d.stream(), first+segment.Seq(d.rng.IntN(int(next-first)+1)) //nolint:gosec // small
	got, err := collectShard(ro.ReadShard(d.t.Context(), from, 0))
	d.sameErr(err, nil)
	d.sameRows(got, rowsFrom(m, "", from))
	got = nil
	for row, err := range ro.Read(d.t.Context(), stream, from, 0) {
		d.sameErr(err, nil)
		got = append(got, ShardRow{stream, row})
	}
	if s, _ := d.of(stream); s == shard {
		d.sameRows(got, rowsFrom(m, stream, from))
	} else {
		d.sameRows(got, nil)
	}
}

// rowsFrom is read without a watermark, which only the catalog knows.
func rowsFrom(m *model, stream string, from segment.Seq) []ShardRow {
	all := *m
	all.watermark = 0
	return all.read(stream, from, 0)
}

func (d *duel) opFlush() { d.flush(d.wr) }

func (d *duel) opHousekeep() {
	for _, s := range d.wr.shards {
		s.housekeep(d.t.Context())
	}
}

func (d *duel) opRestart() {
	d.mustClose(d.wr)
	d.start()
	d.readAll()
}

// opCrash ends the process; the disk is as the kernel has it.
func (d *duel) opCrash() {
	abandon(d.t, d.wr)
	d.start()
	d.readAll()
}

// opPowerCut leaves what was synced, and a random part of the rest.
func (d *duel) opPowerCut() {
	abandon(d.t, d.wr)
	d.disk = d.disk.Cut(d.rng.Uint64())
	d.start()
	d.readAll()
}

// opMove takes the chains over with an empty directory, once all is published.
func (d *duel) opMove() {
	d.mustClose(d.wr)
	d.dirs++
	d.start()
	d.readAll()
}

// opRetain runs retention under some policy. Where slots end the model does not know, so
// it takes the watermark over, if that is one that may be.
func (d *duel) opRetain() {
	ctx := d.t.Context()
	policy := catalog.Retention{Mode: catalog.RetentionInterest, MinSegments: 1, SegmentBytes: 1}
	switch d.rng.IntN(4) {
	case 0:
	case 1:
		policy.Mode = catalog.RetentionKeep
	default:
		policy.Rows = uint64(1 + d.rng.IntN(20)) //nolint:gosec // small
	}
	if _, err := d.cat.SetRetention(ctx, 1, policy); !d.sameErr(err, nil) {
		return
	}
	out, err := d.wr.Retain(ctx)
	if err != nil && !errors.Is(err, catalog.ErrConflict) {
		d.failf("%v", err)
	} // a cursor that was absorbed between plan and commit: nothing was given up
	for shard, m := range d.models {
		got := out[segment.Shard(shard)] //nolint:gosec // one or two
		raised := got.WatermarkSeq > m.watermark
		wrong := got.WatermarkSeq < m.watermark || raised && !got.Raised // it may rise over a fence, without a row
		if raised {
			wrong = wrong || policy.Keeps() || policy.Rows == 0 && len(m.cursors) == 0 ||
				uint64(m.end()-1-got.WatermarkSeq) < policy.Rows
			for _, cursor := range m.cursors {
				wrong = wrong || got.WatermarkSeq > cursor
			}
		}
		if wrong {
			d.failf("%+v from watermark %d with cursors %v under %+v", got, m.watermark, m.cursors, policy)
		}
		d.raised = d.raised || raised
		m.watermark = got.WatermarkSeq
	}
}

func (d *duel) readAll() {
	d.t.Helper()
	for shard := range d.models {
		d.scanShard(segment.Shard(shard), 1, 0) //nolint:gosec // one or two
	}
	for i := range duelStreams {
		stream := fmt.Sprint("stream-", i)
		_, m := d.of(stream)
		d.readStream(m, stream, 1, 0)
	}
	d.opConsumers()
}
