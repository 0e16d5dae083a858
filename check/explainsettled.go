package check

import (
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// explainKey turns facts into sentences. It is pure: all it knows of the world is in f.
func explainKey(f *KeyFacts) (*Explanation, error) {
	e := &Explanation{Subject: f.Key, Kind: f.Kind, Key: f, Why: []string{}, Next: []string{}}
	switch f.key.Kind {
	case segment.KeySlot:
		f.places(e)
		f.slotIs(e)
	case segment.KeyStream, segment.KeyPack:
		f.places(e)
		f.settledIs(e)
	case segment.KeyHead, segment.KeyTopology, segment.KeyStamp, segment.KeyTrim:
		f.places(e)
		f.recordIs(e)
	default:
		f.places(e)
		f.otherIs(e)
	}
	if e.Situation == "" {
		return nil, fmt.Errorf("%w: %s: no bucket has it and the catalog does not know it; look at its spelling, or at the bucket that --dir or --store names; of a row: strandline explain STREAM POS", ErrNothing, f.Key)
	}
	for _, line := range f.Audit {
		e.why("recorded %s", line)
	}
	return e, nil
}

func (f *KeyFacts) exists() bool {
	for _, c := range f.Copies {
		if c.Exists {
			return true
		}
	}
	return false
}

// sound: a bucket has it, and it is an object of ours.
func (f *KeyFacts) sound() bool {
	for _, c := range f.Copies {
		if c.Exists && c.Broken == "" && c.Unread == "" {
			return true
		}
	}
	return false
}

// unread: a bucket has it and does not give its bytes.
func (f *KeyFacts) unread() bool {
	return slices.ContainsFunc(f.Copies, func(c Copy) bool { return c.Unread != "" })
}

// unreadNext is what to do about bytes that could not be read.
func (f *KeyFacts) unreadNext(e *Explanation) {
	e.next("ask again: a store that was away for a moment gives it then; if it is always this object, look at the store's disks and at its own log, and have it heal")
	e.next("or bring it back under the same key from a copy or a backup of the bucket, then run strandline fsck")
	e.next("if there is none: strandline accept-loss %s %s --unreadable gives its rows up, if reads of it are cut short each time", f.Key, f.streamWord())
}

// places says where it stands.
func (f *KeyFacts) places(e *Explanation) {
	for _, c := range f.Copies {
		if !c.Exists {
			continue
		}
		e.why("it is in %s, %s bytes, put %s", c.Bucket, commas(c.Bytes), relative(f.Now, c.Put))
		if c.Broken != "" {
			e.why("its bytes there are no whole object: %s", c.Broken)
		}
		if c.Unread != "" {
			e.why("its bytes there could not be read: %s", c.Unread)
		}
	}
	if f.Uploads > 0 {
		e.why("%s of it unfinished", count(f.Uploads, "upload"))
	}
}

// named says who names it.
func (f *KeyFacts) named(e *Explanation) {
	if f.RefsTotal == 0 {
		e.why("no ref names it")
		return
	}
	e.why("named by %s of %s, %d live, %d dead; %s", count(f.RefsTotal, "ref"), count(f.Streams, "stream"), f.LiveRefs, f.RefsTotal-f.LiveRefs, count(int(f.LiveRows), "live row"))
	const shown = 5
	for i, r := range f.Refs {
		if i == shown {
			e.why("and %s more", count(f.RefsTotal-shown, "ref"))
			break
		}
		e.why("%s", r.text())
	}
	if f.sound() {
		e.why("%s bytes of its chunks are live, %s dead", commas(f.LiveBytes), commas(f.DeadBytes))
	}
}

func (r *RefFact) text() string {
	s := fmt.Sprintf("stream %q, rows %d to %d of epoch %d", r.Stream, r.First, r.Last, r.Epoch)
	switch {
	case r.Dead:
		s += fmt.Sprintf(": dead, live from %s", r.LiveFrom)
	case (segment.Pos{Epoch: r.Epoch, Seq: r.First}).Less(r.LiveFrom):
		s += fmt.Sprintf(": live from %s", r.LiveFrom)
	default:
		s += ": live"
	}
	if r.Trouble != "" {
		s += ", but " + r.Trouble
	}
	return s
}

// damagedIs says of an object that live refs name why it does not serve them, if so.
func (f *KeyFacts) damagedIs(e *Explanation) bool {
	if f.LiveRefs == 0 {
		return false
	}
	switch {
	case !f.exists():
		e.is(IsMissing, "it is gone, and %s of %s need it", count(int(f.LiveRows), "live row"), count(f.Streams, "stream"))
		e.next("nothing of ours deletes what a ref names: look for a lifecycle rule, or for who else has access to the bucket")
	case !f.sound() && f.unread():
		e.is(IsUnreadable, "its bytes could not be read, and %s of %s need it", count(int(f.LiveRows), "live row"), count(f.Streams, "stream"))
		f.unreadNext(e)
		return true
	case !f.sound():
		e.is(IsDamaged, "it is not what was put there, and %s of %s need it", count(int(f.LiveRows), "live row"), count(f.Streams, "stream"))
	default:
		for _, r := range f.Refs {
			if r.Trouble != "" {
				e.is(IsDamaged, "its footer does not cover a live ref: %s", r.text())
				break
			}
		}
	}
	if e.Situation == "" {
		return false
	}
	e.next("bring it back under the same key from a copy or a backup of the bucket, then run strandline fsck")
	e.next("if there is none: strandline accept-loss %s %s gives its rows up, so that readers get a clear answer", f.Key, f.streamWord())
	return true
}

// streamWord is the stream of the key if it has just one.
func (f *KeyFacts) streamWord() string {
	if f.Streams == 1 && len(f.Refs) > 0 {
		return fmt.Sprintf("%q", f.Refs[0].Stream)
	}
	return "STREAM"
}

// settledIs explains a stream object or a pack.
func (f *KeyFacts) settledIs(e *Explanation) {
	known := f.exists() || f.RefsTotal > 0 || f.Intent != nil || f.marker(catalog.DutyReapCheck) != nil || f.Uploads > 0
	if !known {
		return
	}
	f.named(e)
	switch {
	case f.damagedIs(e):
	case f.LiveRefs > 0:
		f.liveIs(e)
	case f.RefsTotal > 0:
		e.is(DeadNamed, "every ref that names it lies below live_from; they are retired, then its graces run")
		e.next("the teardown of its stream, or the reclaim of its chain, retires them and arms its reap-check one read grace (%s) out", spanText(f.ReadGrace))
		f.reapNext(e)
	case f.Intent != nil:
		f.intentIs(e)
	case f.marker(catalog.DutyReapCheck) != nil && f.exists():
		e.is(DeadWaiting, "no ref names it, and the reap waits for its graces")
		f.reapNext(e)
	case f.marker(catalog.DutyReapCheck) != nil:
		e.is(GoneBurned, "it is not there, and no ref names it; the reap-check that stands finds nothing and ends")
		f.reapNext(e)
	case f.marker(catalog.DutyGC) != nil:
		e.is(DeadWaiting, "no ref names it; the gc that is owed finds nothing to move and has it reaped")
		e.next("gc arms its reap-check, one read grace (%s) out: %s", spanText(f.ReadGrace), f.marker(catalog.DutyGC).when(f.Now))
	default:
		e.is(IsLeaked, "neither a ref, an intent nor a marker watches it")
		e.next("strandline auditor --once --sweep has it reaped, once it is older than the orphan grace (%s)", spanText(f.OrphanGrace))
	}
}

func (f *KeyFacts) liveIs(e *Explanation) {
	if f.DeadBytes > 0 {
		e.is(PartlyDead, "readers need it, and %s of its %s bytes of rows are dead", commas(f.DeadBytes), commas(f.LiveBytes+f.DeadBytes))
		if f.marker(catalog.DutyGC) == nil {
			e.next("gc rewrites it once at least half of it and 64 MiB (unless --gc-least says otherwise) are dead, when a reap-check looks")
		}
	} else {
		e.is(IsLive, "readers need all of it")
	}
	f.owedNext(e)
	f.reapNext(e)
}

// owedNext says what the movers owe it.
func (f *KeyFacts) owedNext(e *Explanation) {
	if m := f.marker(catalog.DutyGC); m != nil {
		e.next("gc moves what is live into a new revision, then this one dies: %s", m.when(f.Now))
	}
	if m := f.marker(catalog.DutyTailFill); m != nil {
		e.next("tail-fill folds the rows that follow into a new revision, then this one dies: %s", m.when(f.Now))
	}
	if m := f.marker(catalog.DutyPackMerge); m != nil {
		e.next("pack-merge makes one pack of up to eight of generation %d, this one perhaps among them: %s", f.Generation, m.when(f.Now))
	}
}

// reapNext says when it may go at the earliest.
func (f *KeyFacts) reapNext(e *Explanation) {
	m := f.marker(catalog.DutyReapCheck)
	switch {
	case m == nil:
	case f.LiveRefs > 0:
		e.next("a reap-check looks at it and lets it stand: %s", m.when(f.Now))
	case m.Confirmed:
		e.next("confirmed dead %s; deleted at the earliest %s (read grace %s), by any auditor: its reap-check is %s",
			relative(f.Now, m.Due.Add(-f.ReadGrace)), relative(f.Now, m.Due), spanText(f.ReadGrace), m.when(f.Now))
	default:
		earliest := m.Due
		if earliest.Before(f.Now) {
			earliest = f.Now
		}
		e.next("its reap-check is %s; if it is dead then, it is confirmed, and deleted one read grace (%s) later, so at the earliest %s, by any auditor",
			m.when(f.Now), spanText(f.ReadGrace), relative(f.Now, earliest.Add(f.ReadGrace)))
	}
}
