package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/strandline/strandline/segment"
)

// standing is one segment file as its ends describe it: enough to check how the
// files follow each other without reading them through.
type standing struct {
	id    segment.ID
	path  string
	info  Info
	uuid  segment.UUID
	start segment.Start
	seal  *segment.Seal // nil: the file does not end in a Seal
	head  error         // newest only: no whole header and SegmentStart
}

func (s standing) sealed(end int64) SealedSegment {
	return SealedSegment{
		ID: s.id, UUID: s.uuid, Prev: s.start.Prev, Chain: s.start.Chain,
		Base: s.start.Base, Next: s.seal.Next, Term: s.start.Term,
		Frames: s.seal.Frames, Bytes: end, Digest: s.seal.Digest,
		SealedAt: s.info.ModTime, Path: s.path,
	}
}

// headProbe is read of a file for its SegmentStart; only one with many consumers
// needs more.
const headProbe = 4 << 10

// inspectFile reads a segment file's first and last frame.
func inspectFile(fsys FS, dir string, id segment.ID) (s standing, err error) {
	s = standing{id: id, path: segmentPath(dir, id)}
	f, err := fsys.Open(s.path)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if s.info, err = f.Stat(); err != nil {
		return s, err
	}
	if err := s.readHead(f); err != nil {
		if !segment.IsStructural(err) {
			return s, err
		}
		s.head = err
		return s, nil
	}
	return s, s.readSeal(f)
}

// readHead reads header and SegmentStart.
func (s *standing) readHead(r io.ReaderAt) error {
	err := s.scanHead(r, min(s.info.Size, headProbe))
	var short *segment.InvalidFrameError
	if s.info.Size > headProbe && errors.As(err, &short) && short.Fault == segment.FaultShortPayload {
		err = s.scanHead(r, s.info.Size)
	}
	return err
}

func (s *standing) scanHead(r io.ReaderAt, size int64) error {
	sc, err := segment.NewScanner(r, size)
	if err != nil {
		return err
	}
	s.uuid = sc.UUID()
	if _, err := sc.Next(); err != nil {
		if errors.Is(err, io.EOF) {
			return &segment.InvalidFrameError{Offset: segment.HeaderBytes, Fault: segment.FaultShortHeader}
		}
		return err
	}
	s.start = sc.Start()
	return nil
}

// readSeal looks for a Seal in the file's last bytes.
func (s *standing) readSeal(r io.ReaderAt) error {
	at := s.info.Size - sealFrameBytes
	if at < segment.HeaderBytes {
		return nil
	}
	b := make([]byte, sealFrameBytes)
	if n, err := r.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	f, n, err := segment.ParseFrame(b, s.uuid, at)
	if err != nil || n != len(b) || f.Kind != segment.KindSeal {
		return nil //nolint:nilerr // not a Seal: whoever needs one says so
	}
	seal, err := segment.DecodeSeal(f.Payload)
	if err == nil {
		s.seal = &seal
	}
	return segment.InFile(err, s.path, s.id)
}

// survey reads the ends of every file, in order. Files at or below the reclaim
// point are leftovers: named, never read.
func survey(fsys FS, dir string, ids []segment.ID, reclaimed segment.ID) (chain []standing, leftovers []segment.ID, err error) {
	for _, id := range ids {
		if id <= reclaimed {
			leftovers = append(leftovers, id)
			continue
		}
		s, err := inspectFile(fsys, dir, id)
		if err != nil {
			return nil, nil, fmt.Errorf("segment %d: %w", id, err)
		}
		chain = append(chain, s)
	}
	return chain, leftovers, nil
}

// checkChain holds the files against each other: which may be missing, and that
// each follows the one before. older are all that must be whole and sealed.
func checkChain(older []standing, newest *standing, s sidecars) error {
	all := older
	if newest != nil {
		all = append(append([]standing(nil), older...), *newest)
	}
	covered := max(s.reclaim.Segment, checkpointSegment(all, s.checkpoint))
	if err := checkMissing(all, covered, s); err != nil {
		return err
	}
	for i := range all {
		if err := checkStart(all[i], all[0]); err != nil {
			return err
		}
		if i < len(older) && all[i].seal == nil {
			return damage(all[i], all[i].info.Size, "an older segment does not end in a Seal")
		}
		if i > 0 && all[i].id == all[i-1].id+1 {
			if err := checkFollows(all[i-1], all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkpointSegment finds the segment that CHECKPOINT names by its UUID: one
// that stands here, or the one before one that does. 0 if it is neither.
func checkpointSegment(all []standing, cp *segment.Checkpoint) segment.ID {
	if cp == nil {
		return 0
	}
	for _, s := range all {
		if s.uuid == cp.UUID {
			return s.id
		}
		if s.start.Prev == cp.UUID {
			return s.id - 1
		}
	}
	return 0
}

// checkMissing allows a gap only at or below covered: housekeeping unlinks there,
// and a power cut may keep any of its unlinks.
func checkMissing(all []standing, covered segment.ID, s sidecars) error {
	if len(all) == 0 {
		if s.reclaim.Segment > 0 {
			return &segment.CorruptionError{
				Segment: s.reclaim.Segment, File: segment.ReclaimFile,
				Reason: "reclaim.json gives up all that stands here: the newest segment is never reclaimed",
			}
		}
		if s.checkpoint != nil && s.checkpoint.Offset > segment.HeaderBytes {
			return &segment.CorruptionError{
				UUID: s.checkpoint.UUID, Offset: s.checkpoint.Offset, File: segment.CheckpointFile,
				Reason: "CHECKPOINT names a segment and no segment stands here: the newest is never unlinked",
			}
		}
		return nil
	}
	next := segment.ID(1)
	for _, st := range all {
		if st.id != next && st.id-1 > covered {
			return &segment.CorruptionError{
				Segment: max(next, covered+1),
				Reason:  fmt.Sprintf("segments %d to %d are missing, and CHECKPOINT and reclaim.json cover only what is up to %d", max(next, covered+1), st.id-1, covered),
			}
		}
		next = st.id + 1
	}
	return nil
}

func checkStart(s, first standing) error {
	if s.start.ID != s.id {
		return damage(s, segment.HeaderBytes, "SegmentStart says segment %d", s.start.ID)
	}
	if s.start.Chain != first.start.Chain {
		return damage(s, segment.HeaderBytes, "SegmentStart is of chain %s, the log of %s", s.start.Chain, first.start.Chain)
	}
	return nil
}

func checkFollows(prev, s standing) error {
	if s.start.Prev != prev.uuid || s.start.Base != prev.seal.Next || s.start.Term < prev.start.Term {
		return damage(s, segment.HeaderBytes,
			"SegmentStart (after %s, base seq %d, term %d) does not follow segment %d (%s, next seq %d, term %d)",
			s.start.Prev, s.start.Base, s.start.Term, prev.id, prev.uuid, prev.seal.Next, prev.start.Term)
	}
	return nil
}

func damage(s standing, off int64, format string, args ...any) error {
	return &segment.CorruptionError{
		File: s.path, Segment: s.id, UUID: s.uuid, Offset: off, Reason: fmt.Sprintf(format, args...),
	}
}

// vanished says that a file went between being listed and being read: a live
// writer's housekeeping, seen by a read-only open.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ageLeft is how long the open segment may still stay open after a restart. Its
// first frame came no earlier than its SegmentStart; a clock that stepped counts
// as a full age.
func ageLeft(start segment.Start, now time.Time, age time.Duration) time.Duration {
	gone := now.Sub(time.Unix(0, start.Created))
	if gone < 0 {
		return age
	}
	return max(0, age-gone)
}
