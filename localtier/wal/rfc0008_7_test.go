package wal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.7: CHECKPOINT is durable before it is told of, housekeeping
// unlinks what lies wholly below it and the retain floor, and nothing else.
func TestRFC0008_7_Checkpoint(t *testing.T) {
	t.Run("normal", rfc7Normal)
	t.Run("killed before housekeeping", rfc7Killed)
	t.Run("surviving segments", rfc7Surviving)
	t.Run("retain floor", rfc7Floor)
}

// rfc7Log is k sealed segments of three rows, and an open one.
func rfc7Log(t *testing.T, k int) (*powercut.FS, *wal.Log) {
	t.Helper()
	fsys := powercut.New()
	l := fresh(t, fsys)
	for i := range k + 1 {
		for j := range 3 {
			mustPut(t, l, fmt.Sprintf("%d.%d", i+1, j))
		}
		if i < k {
			mustSeal(t, l)
		}
	}
	return fsys, l
}

func standingIDs(l *wal.Log) (ids []segment.ID) {
	for _, s := range l.Sealed() {
		ids = append(ids, s.ID)
	}
	return append(ids, l.State().Segment)
}

func wantStanding(t *testing.T, l *wal.Log, fsys *powercut.FS, about string, want ...segment.ID) {
	t.Helper()
	if got := standingIDs(l); !slices.Equal(got, want) {
		t.Fatalf("%s: segments %v stand, want %v", about, got, want)
	}
	for id := segment.ID(1); id <= want[len(want)-1]; id++ {
		_, err := fsys.ReadFile(segFile(id))
		if there := slices.Contains(want, id); there != (err == nil) || !there && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: file of segment %d: %v", about, id, err)
		}
	}
}

func rfc7Normal(t *testing.T) {
	fsys, l := rfc7Log(t, 5)
	x := l.Sealed()[2].End() // segment 3
	from := len(fsys.Ops())
	must(t, l.Checkpoint(bg, x))
	want := []string{"create CHECKPOINT.tmp", "write CHECKPOINT.tmp", "sync CHECKPOINT.tmp", "rename CHECKPOINT.tmp", "syncdir"}
	if got := steps(fsys.Ops()[from:]); !slices.Equal(got, want) {
		t.Errorf("checkpoint did %v, want %v", got, want)
	}
	record := append([]byte("OWCK"), 1, 0, 0, 0)
	record = append(record, x.UUID[:]...)
	record = binary.LittleEndian.AppendUint64(record, uint64(x.Byte))
	if got := mustRead(t, fsys, shardDir+"/CHECKPOINT"); len(record) != 32 || !slices.Equal(got, record) {
		t.Errorf("CHECKPOINT is % x, want % x", got, record)
	}
	var below int64
	for _, s := range l.Sealed()[:3] {
		below += s.Bytes
	}
	disk := l.Metrics().DiskBytes
	gone, err := l.Housekeep(bg, wal.NoFloor)
	must(t, err)
	if !slices.Equal(gone, []segment.ID{1, 2, 3}) {
		t.Errorf("housekeeping unlinked %v", gone)
	}
	if got := disk - l.Metrics().DiskBytes; got != below {
		t.Errorf("disk bytes fell by %d, the segments had %d", got, below)
	}
	wantStanding(t, l, fsys, "below the checkpoint", 4, 5, 6)
	// One byte short of segment 4's end: it straddles.
	y := l.Sealed()[0].End()
	y.Byte--
	must(t, l.Checkpoint(bg, y))
	gone, err = l.Housekeep(bg, wal.NoFloor)
	must(t, err)
	if len(gone) != 0 {
		t.Errorf("a segment that straddles the checkpoint was unlinked: %v", gone)
	}
	// The open one, up to its very end: the newest stays.
	must(t, l.Checkpoint(bg, l.State().Durable))
	_, err = l.Housekeep(bg, wal.NoFloor)
	must(t, err)
	wantStanding(t, l, fsys, "checkpoint at the end", 6)
	mustClose(t, l)
}

// childCheckpoint is the child's part of rfc7Killed: it checkpoints the segment
// before the last sealed one.
func childCheckpoint(l *wal.Log) error {
	sealed := l.Sealed()
	if len(sealed) < 2 {
		return fmt.Errorf("only %d segments are sealed", len(sealed))
	}
	s := sealed[len(sealed)-2]
	if err := l.Checkpoint(bg, s.End()); err != nil {
		return err
	}
	fmt.Println("checkpoint", s.UUID, s.Bytes, uint64(s.Next-1))
	return nil
}

// rfc7Killed: SIGKILL between Checkpoint and Housekeep. The next process knows
// X; its publisher suppresses what lies at or below it by each frame's offset;
// the replay delivers those frames all the same, for others' horizons.
func rfc7Killed(t *testing.T) {
	dir := t.TempDir()
	kills := 3
	if testing.Short() {
		kills = 1
	}
	for i := range kills {
		says := killedChild(t, modeCheckpoint, dir, 14+6*i)
		word := strings.Fields(says.rest["checkpoint"])
		if len(word) != 3 {
			t.Fatalf("the child said %v", says.rest)
		}
		type delivered struct {
			at  wal.Offset
			seq segment.Seq
		}
		var all []delivered
		l, err := wal.Open(t.Context(), dir, config(nil), func(r wal.Replayed) error {
			if r.Frame.Kind != segment.KindBatch {
				return nil
			}
			_, first, _, err := segment.BatchSpan(r.Frame.Payload)
			all = append(all, delivered{r.Offset, first})
			return err
		})
		must(t, err)
		x, ok := l.LastCheckpoint()
		if !ok || x.UUID.String() != word[0] || fmt.Sprint(x.Byte) != word[1] {
			t.Fatalf("kill %d: CHECKPOINT is %v, the child wrote %v", i, x, word)
		}
		var published []segment.Seq
		for _, d := range all {
			if d.at.Compare(x) > 0 {
				published = append(published, d.seq)
			}
		}
		if last := uint64(all[len(all)-1].seq); last < says.numbers["acked"] || len(published) == len(all) {
			t.Fatalf("kill %d: rows to %d delivered, %d acknowledged; %d of %d lie above the checkpoint",
				i, last, says.numbers["acked"], len(published), len(all))
		}
		if len(published) == 0 || fmt.Sprint(uint64(published[0])-1) != word[2] {
			t.Fatalf("kill %d: the publisher begins at %v, the child had published to %s", i, published, word[2])
		}
		gone, err := l.Housekeep(t.Context(), wal.NoFloor)
		must(t, err)
		if len(gone) == 0 || gone[len(gone)-1] != x.Segment {
			t.Fatalf("kill %d: housekeeping unlinked %v, CHECKPOINT is at %v", i, gone, x)
		}
		mustClose(t, l)
	}
}

// rfc7Surviving: after housekeeping a fresh open goes on with what stands; a
// checkpoint needs no counter that the unlinked segments would have to give.
func rfc7Surviving(t *testing.T) {
	fsys, l := rfc7Log(t, 5)
	x := l.Sealed()[3].End()
	must(t, l.Checkpoint(bg, x))
	_, err := l.Housekeep(bg, wal.NoFloor)
	must(t, err)
	mustClose(t, l)
	for _, seed := range []uint64{0, 1, 2, 3} {
		boot := fsys.Cut(seed)
		l, r := open(t, boot)
		if got, ok := l.LastCheckpoint(); !ok || got.Compare(x) != 0 || got.UUID != x.UUID {
			t.Fatalf("CHECKPOINT is %v, want %v", got, x)
		}
		wantStanding(t, l, boot, "after a restart", 5, 6)
		if first := r.rows[0].Seq; first != 13 {
			t.Fatalf("the replay begins at %d", first)
		}
		if err := l.Checkpoint(bg, wal.Offset{Segment: 2, UUID: l.Sealed()[0].Prev, Byte: 40}); err != nil {
			t.Fatalf("a lower checkpoint is a no-op: %v", err)
		}
		y := l.Sealed()[0].End()
		must(t, l.Checkpoint(bg, y))
		gone, err := l.Housekeep(bg, wal.NoFloor)
		must(t, err)
		if got, _ := l.LastCheckpoint(); got != y || !slices.Equal(gone, []segment.ID{5}) {
			t.Fatalf("CHECKPOINT %v, unlinked %v", got, gone)
		}
		mustPut(t, l, "goes on")
		mustClose(t, l)
		l, _ = open(t, boot.Cut(0))
		wantStanding(t, l, boot, "at the end", 6)
		mustClose(t, l)
	}
}

// rfc7Floor: a consumer that lags behind the checkpoint delays the unlinking,
// over restarts too, and never cancels it.
func rfc7Floor(t *testing.T) {
	fsys, l := rfc7Log(t, 5)
	must(t, l.Checkpoint(bg, l.Sealed()[4].End()))
	for floor, want := range [][]segment.ID{
		{1, 2, 3, 4, 5, 6}, // 0
		{1, 2, 3, 4, 5, 6}, // 1: its rows are still wanted
		{2, 3, 4, 5, 6},
		{3, 4, 5, 6},
	} {
		_, err := l.Housekeep(bg, segment.ID(floor))
		must(t, err)
		wantStanding(t, l, fsys, fmt.Sprint("floor ", floor), want...)
	}
	mustClose(t, l)
	fsys = fsys.Cut(0)
	l, r := open(t, fsys)
	if first := r.rows[0].Seq; first != 7 || len(r.rows) != 12 {
		t.Fatalf("the floor held from row 7; the replay has %d rows from %d", len(r.rows), first)
	}
	_, err := l.Housekeep(bg, 3)
	must(t, err)
	wantStanding(t, l, fsys, "the same floor", 3, 4, 5, 6)
	_, err = l.Housekeep(bg, wal.NoFloor)
	must(t, err)
	wantStanding(t, l, fsys, "no floor any more", 6)
	mustClose(t, l)
}
