package localtier

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// quarantineDir holds, beside the shard directories, those that did not continue
// their chain: <chain>.<writer uuid>.<n>. Nothing in it that may hold a row which the
// chain does not have is ever deleted by us.
const quarantineDir = "quarantine"

// verdictFile says what of a quarantined directory the chain does not have. It is the
// commit point of the judgement (judgeAside): a segment that it does not list was
// proven absorbed and may go, at once or at the next look; one that it lists stays.
// Without it nobody knows yet which rows are in the chain, so none is salvaged.
const verdictFile = "quarantine.json"

// maxVerdict bounds a verdict: some hundred bytes for each segment that is left.
const maxVerdict = 64 << 20

// Quarantine is a shard directory that was set aside.
type Quarantine struct {
	Dir      string
	Chain    segment.Chain
	Writer   segment.UUID
	Segments int    // with rows that the chain does not have; while unjudged, all
	Rows     uint64 // in them
	Bytes    int64
	Since    time.Time // of the verdict; zero while unjudged
	// Judged: it is known which rows are in the chain. The next start of a writer on
	// this directory finds it out, once the chain has an owner again.
	Judged bool
	// Salvaged: all of its rows were appended again (Salvage).
	Salvaged bool
	// Damage is why it could not be looked through; empty if it could.
	Damage string
}

// verdict is the content of verdictFile.
type verdict struct {
	Version int          `json:"version"`
	ID      segment.UUID `json:"id"` // of this verdict: salvage.json is about it
	Since   time.Time    `json:"since"`
	Left    []leftOver   `json:"left"`
}

const verdictVersion = 1

// leftOver is a segment with rows that the chain does not have: those from Base on, which
// in a verdict may be above the segment's first. Only its first Bytes are valid: the newest
// one may have been open.
type leftOver struct {
	ID    segment.ID   `json:"segment"`
	UUID  segment.UUID `json:"uuid"`
	Base  segment.Seq  `json:"base"`
	Next  segment.Seq  `json:"next"`
	Term  segment.Term `json:"term"`
	Bytes int64        `json:"bytes"`
}

// ListQuarantine lists what was set aside under dir, which is Options.Dir. It changes
// nothing and may run beside a writer.
func ListQuarantine(ctx context.Context, dir string) ([]Quarantine, error) {
	return ListQuarantineOn(ctx, wal.OSFS(false), dir)
}

// ListQuarantineOn is ListQuarantine on another file layer.
func ListQuarantineOn(ctx context.Context, fsys wal.FS, dir string) ([]Quarantine, error) {
	return listQuarantine(ctx, fsys, dir)
}

func listQuarantine(ctx context.Context, fsys wal.FS, dir string) ([]Quarantine, error) {
	entries, err := aside(fsys, dir)
	if err != nil {
		return nil, err
	}
	var out []Quarantine
	for _, q := range entries {
		if err := ctx.Err(); err != nil {
			return out, context.Cause(ctx)
		}
		if err := describe(ctx, fsys, &q); errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			q.Damage = err.Error()
		}
		out = append(out, q)
	}
	return out, nil
}

// aside names the quarantined directories, without looking into them.
func aside(fsys wal.FS, dir string) ([]Quarantine, error) {
	root := filepath.Join(dir, quarantineDir)
	names, err := fsys.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list what is in quarantine: %w", err)
	}
	slices.Sort(names)
	var out []Quarantine
	for _, name := range names {
		if q, ok := parseAside(name); ok {
			q.Dir = filepath.Join(root, name)
			out = append(out, q)
		}
	}
	return out, nil
}

func asideName(c segment.Chain, writer segment.UUID, n int) string {
	return fmt.Sprintf("%s.%s.%d", c, writer, n)
}

// parseAside is the inverse of asideName; other names are not ours.
func parseAside(name string) (q Quarantine, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 4 {
		return q, false
	}
	chain, ok := parseChain(parts[0] + "." + parts[1])
	writer, err := uuid.Parse(parts[2])
	n, nerr := strconv.Atoi(parts[3])
	if !ok || err != nil || nerr != nil || asideName(chain, writer, n) != name {
		return q, false
	}
	return Quarantine{Chain: chain, Writer: writer}, true
}

// parseChain reads a chain out of the name of its shard directory.
func parseChain(name string) (c segment.Chain, ok bool) {
	var b [8]byte
	digits := strings.Replace(name, ".", "", 1)
	if n, err := hex.Decode(b[:], []byte(digits)); err != nil || n != len(b) || len(digits) != 16 {
		return c, false
	}
	for _, x := range b[:4] {
		c.Epoch = c.Epoch<<8 | segment.Epoch(x)
	}
	for _, x := range b[4:] {
		c.Shard = c.Shard<<8 | segment.Shard(x)
	}
	return c, c.String() == name
}

// describe looks into a quarantined directory.
func describe(ctx context.Context, fsys wal.FS, q *Quarantine) error {
	v, err := readVerdict(fsys, q.Dir)
	if err != nil {
		return err
	}
	var left []leftOver
	if v != nil {
		q.Judged, q.Since, left = true, v.Since, v.Left
		p, err := readProgress(fsys, q.Dir)
		if err != nil {
			return err
		}
		q.Salvaged = p.Done && p.Verdict == v.ID
	} else {
		dir, err := survey(ctx, fsys, q.Dir)
		if err != nil {
			return err
		}
		left = dir.all
	}
	for _, l := range left {
		q.Segments++
		q.Rows += uint64(l.Next - l.Base)
		q.Bytes += l.Bytes
	}
	return nil
}

// surveyed is what lies in a directory.
type surveyed struct {
	writer     segment.UUID
	all        []leftOver
	checkpoint segment.ID // the shared tier had all up to this segment; 0: not known
}

// survey judges a directory's segments as their owner would, and changes nothing.
func survey(ctx context.Context, fsys wal.FS, dir string) (surveyed, error) {
	log, err := wal.OpenReadOnly(ctx, dir, wal.Config{FS: fsys}, nil)
	if err != nil {
		return surveyed{}, err
	}
	out := surveyed{writer: log.Identity().Writer}
	if c, ok := log.LastCheckpoint(); ok {
		out.checkpoint = c.Segment
	}
	for _, s := range log.Sealed() {
		out.all = append(out.all, leftOver{ID: s.ID, UUID: s.UUID, Base: s.Base, Next: s.Next, Term: s.Term, Bytes: s.Bytes})
	}
	if st := log.State(); st.Open {
		out.all = append(out.all, leftOver{
			ID: st.Segment, UUID: st.UUID, Base: st.Start.Base, Next: st.DurableNext, Term: st.Start.Term, Bytes: st.Durable.Byte,
		})
	}
	return out, nil
}

// readVerdict is nil while there is none.
func readVerdict(fsys wal.FS, dir string) (*verdict, error) {
	path := filepath.Join(dir, verdictFile)
	b, err := wal.ReadFile(fsys, path, maxVerdict)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := &verdict{}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, &segment.CorruptionError{File: path, Reason: err.Error()}
	}
	if v.Version != verdictVersion || v.ID == uuid.Nil {
		return nil, &segment.CorruptionError{File: path, Reason: fmt.Sprintf("version %d, id %s; this build knows version %d", v.Version, v.ID, verdictVersion)}
	}
	return v, nil
}

// fs is the file layer of the shard directories.
func (o Options) fs() wal.FS { return (&shardLog{cfg: o.Config}).fs() }
