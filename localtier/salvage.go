package localtier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// progressFile says how far a salvage came. It is a cache of what the shards know of
// the salvaging producer, kept because they forget producers in the end.
const progressFile = "salvage.json"

// progressEvery is how many frames may be asked for again after a crash. Each costs one
// answer from the shard's memory.
const progressEvery = 256

type salvageProgress struct {
	Verdict segment.UUID `json:"verdict"`
	Frames  uint64       `json:"frames"` // acknowledged, from the first on
	Done    bool         `json:"done"`
}

// Salvager appends one frame's rows; Writer.AppendAs is one, or a client of it. A
// *SequenceError has to come through as such: it tells rows that stand already.
type Salvager func(ctx context.Context, p Producer, stream string, rows []segment.Row) error

// Salvage appends the rows of a quarantined directory again, in their order: new seqs,
// the same time, transaction and payload. shards is the shard count of the epoch that
// takes them. It returns how many rows it sent by this call.
//
// It may be run again after any error and any crash, also on a copy of the directory, and
// no row comes in twice: it sends as the producer "salvage/<UUID of the segment>", a frame
// at a time, each frame with its ordinal among those of the segment that go to the same
// shard as its sequence; so a shard knows what it has. The directory stays:
// RemoveQuarantine.
//
// BUG: three things are outside of that. A producer that the shard forgot, after 10,000
// others, or an epoch that ended between a crash and the next run: then the up to 256 frames
// since the last record may come in twice. And rows that were never acknowledged, and that
// their own client appended again since, with or without a producer: what is salvaged comes
// in beside them.
//
// ErrUnjudged: start a writer on the directory first. wal.ErrLocked: another salvage runs.
func Salvage(ctx context.Context, q Quarantine, shards uint32, send Salvager) (rows uint64, err error) {
	return SalvageOn(ctx, wal.OSFS(false), q, shards, send)
}

// SalvageOn is Salvage on another file layer.
func SalvageOn(ctx context.Context, fsys wal.FS, q Quarantine, shards uint32, send Salvager) (rows uint64, err error) {
	return salvage(ctx, fsys, q, shards, send)
}

func salvage(ctx context.Context, fsys wal.FS, q Quarantine, shards uint32, send Salvager) (rows uint64, err error) {
	lock, err := lockAside(fsys, q.Dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	v, err := readVerdict(fsys, q.Dir)
	if err != nil {
		return 0, err
	}
	if v == nil {
		return 0, fmt.Errorf("salvage %s: %w: start a writer on %s, which finds out what of it the chain has", q.Dir, ErrUnjudged, filepath.Dir(filepath.Dir(q.Dir)))
	}
	p, err := readProgress(fsys, q.Dir)
	if err != nil {
		return 0, err
	}
	if p.Verdict != v.ID {
		p = salvageProgress{Verdict: v.ID}
	}
	job := salvageJob{fs: fsys, dir: q.Dir, shards: shards, send: send, progress: p}
	if p.Done {
		return 0, nil
	}
	for _, l := range v.Left {
		if err := job.segment(ctx, l); err != nil {
			return job.rows, errors.Join(err, job.record())
		}
	}
	job.progress.Done = true
	return job.rows, job.record()
}

// salvageJob is one run.
type salvageJob struct {
	fs       wal.FS
	dir      string
	shards   uint32
	send     Salvager
	producer string                   // of the present segment
	next     map[segment.Shard]uint64 // its sequences

	frames   uint64 // seen
	progress salvageProgress
	rows     uint64
}

// segment sends the frames of one segment that were not acknowledged before.
func (j *salvageJob) segment(ctx context.Context, l leftOver) (err error) {
	path := filepath.Join(j.dir, segment.FileName(l.ID))
	f, err := j.fs.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sc, err := segment.NewScanner(f, l.Bytes)
	if err != nil {
		return segment.InFile(err, path, l.ID)
	}
	if sc.UUID() != l.UUID {
		return &segment.CorruptionError{File: path, Segment: l.ID, UUID: sc.UUID(), Reason: fmt.Sprintf("the verdict is about segment %s", l.UUID)}
	}
	j.producer, j.next = "salvage/"+l.UUID.String(), make(map[segment.Shard]uint64)
	for {
		frame, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return segment.InFile(err, path, l.ID)
		}
		if frame.Kind != segment.KindBatch {
			continue // consumers and producers are the chain's, and went on without it
		}
		b, err := segment.DecodeBatch(frame.Payload)
		if err != nil {
			return segment.InFile(err, path, l.ID)
		}
		if err := j.batch(ctx, b, l.Base); err != nil {
			return fmt.Errorf("salvage rows %d to %d of stream %q: %w", b.First, b.Last(), b.Stream, err)
		}
	}
}

// batch sends a frame's rows, unless the chain, which goes on from base, has them, or an
// earlier run sent them.
func (j *salvageJob) batch(ctx context.Context, b segment.Batch, base segment.Seq) error {
	if strings.HasPrefix(b.Stream, "~") {
		return nil // a system record: what it records went another way
	}
	// Counted whoever has it: another copy's verdict may leave more of the segment.
	shard := segment.ShardOf(b.Stream, j.shards)
	j.next[shard]++
	sequence := j.next[shard]
	if b.Last() < base {
		return nil // a slot ends where a frame does
	}
	j.frames++
	if j.frames <= j.progress.Frames {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err := j.send(ctx, Producer{ID: j.producer, Sequence: sequence}, b.Stream, b.Rows)
	var seq *SequenceError
	switch {
	case errors.As(err, &seq) && seq.Taken():
		// A run before this one got it in, and was cut before it could say so.
	case err != nil:
		return err
	default:
		j.rows += uint64(len(b.Rows))
	}
	j.progress.Frames = j.frames
	if j.frames%progressEvery == 0 {
		return j.record()
	}
	return nil
}

func (j *salvageJob) record() error {
	b, err := json.Marshal(j.progress)
	if err != nil {
		return err
	}
	return wal.ReplaceFile(j.fs, filepath.Join(j.dir, progressFile), b)
}

// maxProgress bounds the progress file.
const maxProgress = 4 << 10

// readProgress is zero while there is none.
func readProgress(fsys wal.FS, dir string) (p salvageProgress, err error) {
	path := filepath.Join(dir, progressFile)
	b, err := wal.ReadFile(fsys, path, maxProgress)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		// Not taken for "nothing was sent": shards forget producers.
		return p, &segment.CorruptionError{File: path, Reason: err.Error()}
	}
	return p, nil
}
