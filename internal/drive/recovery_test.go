package drive

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func observedRecovery(t *testing.T) recovered {
	t.Helper()
	o := options(t, Recovery)
	o.Events = 9
	s, err := found(t.Context(), Recovery, &o)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := observeRecovery(t.Context(), &o, s)
	if err := errors.Join(err, s.close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestRecoveryJudges: one thing is broken, and the claim about it does not hold.
func TestRecoveryJudges(t *testing.T) {
	good := observedRecovery(t)
	mustFail(t, good.judge())
	mustAllFail(t, (&recovered{}).judge())
	for name, c := range map[string]struct {
		breakIt func(s *recovered)
		want    []string
	}{
		"last row lost":      {func(s *recovered) { s.global = s.global[:8] }, []string{"zero_loss", "ordering_ok"}},
		"row in the middle":  {func(s *recovered) { s.global = slices.Delete(s.global, 3, 4) }, []string{"zero_loss", "ordering_ok"}},
		"in another stream":  {func(s *recovered) { s.global[2].Stream = "other" }, []string{"zero_loss"}},
		"twice":              {func(s *recovered) { s.global = slices.Insert(s.global, 4, s.global[4]) }, []string{"ordering_ok"}},
		"swapped":            {func(s *recovered) { s.global[1], s.global[2] = s.global[2], s.global[1] }, []string{"ordering_ok"}},
		"seq used again":     {func(s *recovered) { s.next-- }, []string{"ordering_ok"}},
		"byte flipped":       {func(s *recovered) { s.global[5].Payload = "x" + s.global[5].Payload[1:] }, []string{"payloads_match"}},
		"txn lost":           {func(s *recovered) { s.global[5].Txn = "" }, []string{"payloads_match"}},
		"time lost":          {func(s *recovered) { s.global[5].Time = 0 }, []string{"payloads_match"}},
		"row of another":     {func(s *recovered) { k := anyKey(s.scoped); s.scoped[k] = append(s.scoped[k], s.global[1]) }, []string{"scope_ok"}},
		"stream without row": {func(s *recovered) { s.scoped[anyKey(s.scoped)] = nil }, []string{"scope_ok"}},
		"cursor back":        {func(s *recovered) { s.cursor-- }, []string{"cursor_survived"}},
		"cursor ahead":       {func(s *recovered) { s.cursor++ }, []string{"cursor_survived"}},
		"pending row lost":   {func(s *recovered) { s.pending = s.pending[1:] }, []string{"pending_ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.global, s.pending, s.scoped = slices.Clone(good.global), slices.Clone(good.pending), maps.Clone(good.scoped)
			c.breakIt(&s)
			mustFail(t, s.judge(), c.want...)
		})
	}
}

func anyKey(m map[string][]event) string { return slices.Sorted(maps.Keys(m))[0] }

// TestRecoveryOfBrokenDisk: the files themselves are broken before the restart.
func TestRecoveryOfBrokenDisk(t *testing.T) {
	onSegment := func(f func(path string) error) func(context.Context, *site) error {
		return func(_ context.Context, s *site) error {
			files, err := segmentFiles(s.diskDir("0", 0))
			if err != nil || len(files) != 1 {
				return errors.Join(err, errors.New("not one segment"))
			}
			return f(files[0])
		}
	}
	t.Run("a byte of an acknowledged row", func(t *testing.T) {
		breaking(t, Recovery, "killed", onSegment(func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[bytes.Index(b, []byte("event 0 "))] ^= 1
			return os.WriteFile(path, b, 0o600)
		}), "zero_loss", "ordering_ok", "payloads_match", "cursor_survived")
	})
	t.Run("the end is gone", func(t *testing.T) {
		breaking(t, Recovery, "killed", onSegment(func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			end := bytes.Index(b, []byte("event 1 ")) - 80
			return errors.Join(os.Truncate(path, int64(end)), os.Remove(filepath.Join(filepath.Dir(path), "index.json")))
		}), "zero_loss")
	})
	t.Run("the directory is gone", func(t *testing.T) {
		breaking(t, Recovery, "killed", func(_ context.Context, s *site) error {
			return os.RemoveAll(s.diskDir("0", 0))
		}, "zero_loss")
	})
}
