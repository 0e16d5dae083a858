package localtier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// judgeAside judges what lies in quarantine of this chain, and ends removals that were cut.
func (s *shardLog) judgeAside(ctx context.Context) error {
	dir := filepath.Dir(s.dir)
	if err := sweepRemoved(s.fs(), dir); err != nil {
		s.log.Warn("what was removed from quarantine still takes room", "dir", dir, "error", err)
	}
	entries, err := aside(s.fs(), dir)
	if err != nil {
		return err
	}
	for _, q := range entries {
		if q.Chain != s.chain {
			continue
		}
		err := s.judgeOne(ctx, q)
		var locked *wal.LockedError
		switch {
		case errors.As(err, &locked), errors.Is(err, fs.ErrNotExist):
			// Its owner still dies, or somebody salvages from it or removed it.
			s.log.Info("quarantined directory is in use", "dir", q.Dir, "error", err)
		case segment.IsStructural(err):
			// A person has to look; the chain goes on without it.
			s.log.Error("quarantined directory is damaged", "dir", q.Dir, "error", err)
			if aerr := s.catalog.Audit(ctx, "corruption", q.Dir, err.Error()); aerr != nil {
				return errors.Join(err, aerr)
			}
		case err != nil:
			return fmt.Errorf("judge %s: %w", q.Dir, err)
		}
	}
	return nil
}

// judgeOne finds out what of a quarantined directory the chain does not have. One that
// was judged, and holds what the verdict says, is left alone: somebody may salvage from it.
func (s *shardLog) judgeOne(ctx context.Context, q Quarantine) error {
	if v, err := readVerdict(s.fs(), q.Dir); err != nil || v != nil && len(v.Left) > 0 {
		proven, perr := s.provenFiles(q, v)
		if err = errors.Join(err, perr); err != nil || len(proven) == 0 {
			return err
		}
	}
	lock, err := lockAside(s.fs(), q.Dir)
	if err != nil {
		return err
	}
	v, err := s.verdictOf(ctx, q)
	if err == nil && v != nil {
		err = s.unlinkProven(q, v)
	}
	if err = errors.Join(err, lock.Close()); err != nil || v == nil || len(v.Left) > 0 {
		return err
	}
	return removeAside(ctx, s.fs(), q)
}

// verdictOf is the standing verdict, or a new one. It is nil while it is too soon.
func (s *shardLog) verdictOf(ctx context.Context, q Quarantine) (*verdict, error) {
	v, err := readVerdict(s.fs(), q.Dir)
	if err != nil || v != nil {
		return v, err
	}
	dir, err := survey(ctx, s.fs(), q.Dir)
	if err != nil {
		return nil, err
	}
	row, err := s.catalog.Chain(ctx, s.chain)
	if err != nil {
		return nil, fmt.Errorf("read the chain row: %w", err)
	}
	// Until a later term has a slot in the chain, one of these may still enter it: a PUT
	// that was on its way, absorbed by whoever finds it.
	if n := len(dir.all); n > 0 && !row.Closed && row.LastTerm <= dir.all[n-1].Term {
		return nil, nil
	}
	through, err := s.proof(ctx, dir)
	if err != nil {
		return nil, err
	}
	v = &verdict{Version: verdictVersion, ID: uuid.New(), Since: s.now().UTC(), Left: leftOvers(dir.all, through)}
	if err := s.auditAside(ctx, q, v); err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// A crash before this: the same again, with a second audit record. After it: the
	// verdict stands, and what it does not list is unlinked at the next start.
	if err := wal.ReplaceFile(s.fs(), filepath.Join(q.Dir, verdictFile), b); err != nil {
		return nil, fmt.Errorf("write the verdict: %w", err)
	}
	return v, s.at(StepJudged)
}

// leftOvers is the decision what stays: the rows from the first on that is not proven
// absorbed, by segment. Slots enter a chain in order, so behind that one nothing is: what
// would prove otherwise is a mistake, and kept.
func leftOvers(all []leftOver, through func(leftOver) segment.Seq) []leftOver {
	n := 0
	for n < len(all) && through(all[n]) >= all[n].Next {
		n++
	}
	out := []leftOver{}
	for i, l := range all[n:] {
		if i == 0 {
			l.Base = max(l.Base, through(l)) // its first rows may be in the chain
		}
		if l.Next > l.Base {
			out = append(out, l)
		}
	}
	return out
}

// slotPage is how many slot rows are read at a time.
const slotPage = 1000

// proof says up to which seq, exclusive, the chain has a segment's rows, by the catalog
// alone: the slot row of that segment, or, once that is gone, the term table. A chain may
// have fewer of them than lie here: a copy of this directory resumed with what the segment
// held when it was copied, and this one went on. The rest is not proven.
//
// A term of another writer proves only what CHECKPOINT covers here: those segments came
// from the bucket (hydrate). Above it, it is a catalog that gave the term out twice.
func (s *shardLog) proof(ctx context.Context, dir surveyed) (func(leftOver) segment.Seq, error) {
	terms, err := s.catalog.Terms(ctx, s.chain)
	if err != nil {
		return nil, fmt.Errorf("read the terms: %w", err)
	}
	last := make(map[segment.Term]catalog.TermRow)
	for _, t := range terms {
		if t.First != 0 {
			last[t.Term] = t
		}
	}
	slots, err := s.slotsOf(ctx, dir.all)
	if err != nil {
		return nil, err
	}
	row, err := s.catalog.Chain(ctx, s.chain) // behind them: what is not trimmed by now was listed
	if err != nil {
		return nil, fmt.Errorf("read the chain row: %w", err)
	}
	return func(l leftOver) segment.Seq {
		if r := slots[l.UUID]; r.ID != 0 {
			if r.First > l.Base {
				return 0
			}
			return r.Next // the row of a trimmed slot may tell of those before it, too
		}
		if l.ID >= row.Trimmed {
			// Its slot's row would be there. The term says nothing then: behind a catalog that was
			// rolled back another writer may have had the same one.
			return 0
		}
		if t, ok := last[l.Term]; ok && (t.Owner == dir.writer || l.ID <= dir.checkpoint) {
			return t.LastSeq + 1
		}
		return 0
	}, nil
}

// slotsOf are the chain's rows of these segments, as far as it has them: the others are zero.
func (s *shardLog) slotsOf(ctx context.Context, all []leftOver) (map[segment.UUID]catalog.SlotRow, error) {
	slots := make(map[segment.UUID]catalog.SlotRow)
	for _, l := range all {
		slots[l.UUID] = catalog.SlotRow{}
	}
	// Positions never lie below the local id, which the segment had from its chain.
	for from := segment.ID(1); len(all) > 0; {
		page, err := s.catalog.Slots(ctx, s.chain, max(from, all[0].ID), slotPage)
		if err != nil {
			return nil, fmt.Errorf("read the slots: %w", err)
		}
		for _, r := range page {
			if _, ours := slots[r.UUID]; ours && !r.Void {
				slots[r.UUID] = r
			}
		}
		if len(page) < slotPage {
			break
		}
		from = page[len(page)-1].ID + 1
	}
	return slots, nil
}

// auditAside records what is left where everybody looks.
func (s *shardLog) auditAside(ctx context.Context, q Quarantine, v *verdict) error {
	var rows uint64
	for _, l := range v.Left {
		rows += uint64(l.Next - l.Base)
	}
	detail := fmt.Sprintf("the directory of writer %s did not continue the chain; the chain has all of its rows, and it is removed", q.Writer)
	if rows > 0 {
		detail = fmt.Sprintf("the directory of writer %s did not continue the chain: %d rows in %d segments, from seq %d of term %d on, never entered it and lie in %s: append them again with `strandline salvage`",
			q.Writer, rows, len(v.Left), v.Left[0].Base, v.Left[0].Term, q.Dir)
	}
	if err := s.catalog.Audit(ctx, "quarantine", s.chain.String(), detail); err != nil {
		return fmt.Errorf("record what was set aside: %w", err)
	}
	return nil
}

// provenFiles names the segments that the verdict does not list.
func (s *shardLog) provenFiles(q Quarantine, v *verdict) (out []string, err error) {
	if v == nil {
		return nil, nil
	}
	names, err := s.fs().ReadDir(q.Dir)
	for _, name := range names {
		id, ok := segment.ParseFileName(name)
		if ok && !slices.ContainsFunc(v.Left, func(l leftOver) bool { return l.ID == id }) {
			out = append(out, name)
		}
	}
	return out, err
}

// unlinkProven unlinks them.
func (s *shardLog) unlinkProven(q Quarantine, v *verdict) error {
	proven, err := s.provenFiles(q, v)
	if err != nil || len(proven) == 0 {
		return err
	}
	for _, name := range proven {
		if err := s.fs().Remove(filepath.Join(q.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unlink a segment that the chain has: %w", err)
		}
	}
	// A crash before this brings some back: not listed, so unlinked again.
	return s.fs().SyncDir(q.Dir)
}
