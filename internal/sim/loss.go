package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// An object may be lost: from every bucket of the set, so that the operator has to give its
// rows up, or from one of them, so that another serves.

// eventObjectLost takes an object that refs name out of every bucket; a while later the
// operator accepts that.
func (s *Sim) eventObjectLost() {
	key := s.drawNamed(func(string) bool { return true })
	if key == "" {
		return
	}
	s.note("", "object lost", key)
	s.applying.Lock()
	for _, b := range s.buckets {
		s.take(b, key)
	}
	s.check.lost[key] = s.check.objects[key]
	s.applying.Unlock()
	s.in(s.between(5*time.Second, time.Minute), func() { s.operatorAccepts(key) })
}

// eventCopyLost takes a slot out of one bucket of a set.
func (s *Sim) eventCopyLost() {
	key := s.drawNamed(func(key string) bool {
		parsed, err := segment.ParseKey(key)
		return err == nil && parsed.Kind == segment.KeySlot && !slices.ContainsFunc(s.buckets, func(b *bucket) bool { return !b.stands(key) })
	})
	if key == "" || len(s.buckets) == 1 {
		return
	}
	b := s.buckets[s.rng.IntN(len(s.buckets))]
	s.note("", "copy lost", b.Name()+" "+key)
	s.cover.hitLocked(s, "copy lost in "+b.Name())
	s.applying.Lock()
	defer s.applying.Unlock()
	s.take(b, key)
}

// take takes a key out of a bucket. s.applying is held.
func (s *Sim) take(b *bucket, key string) {
	if _, err := b.Delete(context.Background(), []string{key}); err != nil {
		s.check.violated("start", "take %s: %v", key, err)
	}
	b.gone[key], b.taken[key] = true, true
}

// wasTaken says that an event took a key out of a bucket.
func (s *Sim) wasTaken(name, key string) bool {
	return slices.ContainsFunc(s.buckets, func(b *bucket) bool { return b.Name() == name && b.taken[key] })
}

// drawNamed draws an object that refs name and that stands in some bucket.
func (s *Sim) drawNamed(among func(key string) bool) string {
	s.applying.Lock()
	defer s.applying.Unlock()
	keys := slices.DeleteFunc(sortedKeys(s.check.named), func(key string) bool { return key == "" || !s.stands(key) || !among(key) })
	if len(keys) == 0 {
		return ""
	}
	return keys[s.rng.IntN(len(keys))]
}

// eventWrongLoss has the operator take an object for lost that is not, maybe because a
// bucket is away.
func (s *Sim) eventWrongLoss() {
	if key := s.drawNamed(func(string) bool { return true }); key != "" {
		s.operatorAccepts(key)
	}
}

// operatorAccepts gives up what every stream has in an object, as `accept-loss` does.
func (s *Sim) operatorAccepts(key string) {
	s.operate("accept-loss", 3, func(ctx context.Context, p *process) error { return p.acceptLoss(ctx, key) })
}

func (p *process) acceptLoss(ctx context.Context, key string) error {
	refs, err := p.catalog.Liveness(ctx, key)
	if err != nil {
		return err
	}
	for i := range refs {
		stream := refs[i].Stream
		if i > 0 && stream == refs[i-1].Stream {
			continue
		}
		loss, err := check.ProveLoss(ctx, p.catalog, p.classes, key, stream)
		switch {
		case errors.Is(err, check.ErrNotLost):
			p.hit("loss refused")
			return nil
		case errors.Is(err, catalog.ErrNotFound):
			continue // nothing of it is live any more
		case err != nil:
			return err
		case loss.SoundRows > 0:
			p.sim.check.violated("accept-loss", "%d rows of %q can be read in %s, which stands nowhere", loss.SoundRows, stream, key)
		}
		if _, err := p.catalog.AcceptLoss(ctx, key, stream); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
		p.hit("loss accepted")
	}
	return nil
}

// accepting: only what stands in no bucket is given up.
func (k *checker) accepting(key, stream string) {
	if stream == "" {
		return // a void slot: no row of it is in the history
	}
	for _, b := range k.sim.buckets {
		if b.stands(key) {
			k.violated("accept-loss", "%s is given up as lost, and stands in %s", key, b.Name())
		}
	}
}

// isLost says whether a row was in an object that was lost.
func (k *checker) isLost(stream string, at segment.Pos) bool {
	for _, o := range k.lost {
		if t := o.streams[stream]; t != nil {
			if n, _ := t.span(at, at); n > 0 {
				return true
			}
		}
	}
	return false
}

// atLoss says whether the next live row of a stream from a position on was lost.
func (k *checker) atLoss(v memory.View, stream string, at segment.Pos) bool {
	t := k.model.stream(stream)
	for i := t.find(at); i < len(t.at); i++ {
		if k.isLive(v, stream, t.chain[i], t.at[i]) {
			return k.isLost(stream, t.at[i])
		}
	}
	return false
}

// givenUp holds a ref whose rows were given up to what was lost.
func (k *checker) givenUp(r *catalog.Ref) {
	t := k.model.stream(r.Stream)
	for i := t.find(r.FirstPos()); i < len(t.at) && !r.LastPos().Less(t.at[i]); i++ {
		if !k.isLost(r.Stream, t.at[i]) {
			k.violated("I1", "stream %q: rows %s to %s are given up as lost, and %s was not", r.Stream, r.FirstPos(), r.LastPos(), t.at[i])
			return
		}
	}
}

// behindLoss: who is told where to go on behind a loss misses no row that is not lost.
func (k *checker) behindLoss(p *process, e *coldload.ReadError) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	k.sim.cat.View(func(v memory.View) { k.jump(v, p, e.Stream, e.At, e.First) })
}

func (k *checker) jump(v memory.View, p *process, stream string, at, first segment.Pos) {
	t := k.model.stream(stream)
	if !at.Less(first) {
		k.violated("I7", "%s read %q: the loss at %s is to be passed by reading from %s", p.name, stream, at, first)
	}
	for i := t.find(at); i < t.find(first); i++ {
		if k.isLive(v, stream, t.chain[i], t.at[i]) && !k.isLost(stream, t.at[i]) {
			k.violated("I7", "%s read %q: the loss at %s is to be passed by reading from %s, behind the live row at %s", p.name, stream, at, first, t.at[i])
			return
		}
	}
}

// acceptLosses is the operator's part of the end.
func (s *Sim) acceptLosses() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	for _, key := range sortedKeys(s.check.lost) {
		if s.stands(key) {
			continue // it was published once more
		}
		if err := p.acceptLoss(p.ctx, key); err != nil {
			return err
		}
	}
	return p.acceptVoids()
}
