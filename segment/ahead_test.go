package segment

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
)

// TestReadAhead: a scan that reads ahead gives the same frames, digest and verdict as one
// that does not, for frames of all sizes around its window and its room.
func TestReadAhead(t *testing.T) {
	for seed := range uint64(8) {
		file := segmentOfAllSizes(t, rand.New(rand.NewPCG(seed, 1)))
		for _, damage := range []int{0, len(file) / 2, len(file) - 100} {
			b := bytes.Clone(file)
			if damage > 0 {
				b[damage] ^= 1
			}
			want, wantErr := frameSums(t, b, false)
			got, gotErr := frameSums(t, b, true)
			if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
				t.Fatalf("seed %d, damage at %d: %v, read ahead %v", seed, damage, wantErr, gotErr)
			}
			if !bytes.Equal(want, got) {
				t.Fatalf("seed %d, damage at %d: other frames when read ahead", seed, damage)
			}
			if damage == 0 && wantErr != nil {
				t.Fatalf("seed %d: %v", seed, wantErr)
			}
		}
	}
}

// TestReadAheadFails: a read that fails ahead is an error of the frame that needs it, not
// of one before it.
func TestReadAheadFails(t *testing.T) {
	file := segmentOfAllSizes(t, rand.New(rand.NewPCG(7, 7)))
	limit := int64(len(file)) * 2 / 3
	sc, err := NewScanner(failingAt{bytes.NewReader(file), limit}, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer sc.ReadAhead()()
	for err == nil {
		_, err = sc.Next()
	}
	if !errors.Is(err, errPlanted) {
		t.Fatalf("got %v", err)
	}
	if sc.Offset() < limit-scanWindow-MaxFrameBytes {
		t.Fatalf("ended at %d, the disk fails from %d on", sc.Offset(), limit)
	}
}

var errPlanted = errors.New("planted")

type failingAt struct {
	io.ReaderAt
	limit int64
}

func (f failingAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.limit {
		return 0, errPlanted
	}
	return f.ReaderAt.ReadAt(p, off)
}

// frameSums scans a file and returns the frames' payloads and the digest.
func frameSums(t *testing.T, file []byte, ahead bool) (out []byte, err error) {
	t.Helper()
	sc, err := NewScanner(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if ahead {
		defer sc.ReadAhead()()
	}
	for {
		f, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return le.AppendUint64(out, sc.Digest()), nil
		}
		if err != nil {
			return le.AppendUint64(out, sc.Digest()), err
		}
		out = append(le.AppendUint64(out, uint64(f.Offset)), f.Payload...)
	}
}

// segmentOfAllSizes is a sealed segment with frames of a few bytes to some windows.
func segmentOfAllSizes(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	u := uuid.New()
	file := AppendHeader(nil, u)
	frame := func(k Kind, payload []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if file, err = AppendFrame(file, u, int64(len(file)), k, 0, payload); err != nil {
			t.Fatal(err)
		}
	}
	start, err := AppendStart(nil, &Start{Chain: Chain{Epoch: 1}, ID: 1, Base: 1, Term: 1})
	frame(KindStart, start, err)
	n := uint32(1)
	for seq := Seq(1); len(file) < 3*scanWindow; seq++ {
		size := r.IntN(2000)
		switch r.IntN(40) {
		case 0:
			size = aheadRoom - 200 + r.IntN(400)
		case 1:
			size = r.IntN(2 * scanWindow)
		}
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(r.Uint32())
		}
		b, err := AppendBatch(nil, &Batch{Stream: "s", First: seq, Rows: []Row{{Time: 1, Payload: payload}}})
		frame(KindBatch, b, err)
		n++
	}
	frame(KindSeal, AppendSeal(nil, Seal{Frames: n, Next: Seq(n), Digest: xxhash.Sum64(file)}), nil)
	return file
}
