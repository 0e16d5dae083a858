package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func TestSharedJudges(t *testing.T) {
	o := options(t, Shared)
	s, err := found(t.Context(), Shared, &o)
	if err != nil {
		t.Fatal(err)
	}
	good, err := observeShared(t.Context(), &o, s)
	if err := errors.Join(err, s.close(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustFail(t, good.judge())
	mustAllFail(t, (&sharing{}).judge())
	stream := good.streams[0]
	for name, c := range map[string]struct {
		breakIt func(s *sharing)
		want    []string
	}{
		"a slot is missing":    {func(s *sharing) { s.slots[1] = s.slots[1][1:] }, []string{"owner_published_ok"}},
		"not absorbed":         {func(s *sharing) { s.absorbed[1] = catalog.ChainRow{} }, []string{"owner_published_ok"}},
		"a row unpublished":    {func(s *sharing) { row := s.absorbed[0]; row.NextSeq--; s.absorbed[0] = row }, []string{"owner_published_ok"}},
		"a cold row is lost":   {func(s *sharing) { s.cold[stream] = s.cold[stream][1:] }, []string{"nonowner_coldload_from_shared_ok"}},
		"a cold row is other":  {func(s *sharing) { s.cold[stream] = slices.Clone(s.cold[stream]); s.cold[stream][0].Txn = "" }, []string{"nonowner_coldload_from_shared_ok"}},
		"the disk is there":    {func(s *sharing) { s.lost = false }, []string{"crash_recovery_from_shared_ok"}},
		"the heir lacks a row": {func(s *sharing) { s.after = s.after[1:] }, []string{"crash_recovery_from_shared_ok"}},
		"the cursor is lost":   {func(s *sharing) { s.cursor = 0 }, []string{"crash_recovery_from_shared_ok"}},
		"a seq is used again":  {func(s *sharing) { s.next-- }, []string{"crash_recovery_from_shared_ok"}},
		"the heir's is lost":   {func(s *sharing) { s.again = s.again[:len(s.again)-1] }, []string{"crash_recovery_from_shared_ok"}},
		"something was there":  {func(s *sharing) { s.missed = good.acked[:1] }, []string{"shared_miss_ok"}},
		"a miss is a fault":    {func(s *sharing) { s.missErrs = []error{errors.New("no")} }, []string{"shared_miss_ok"}},
		"a miss was not tried": {func(s *sharing) { s.misses-- }, []string{"shared_miss_ok"}},
		"the bucket differs":   {func(s *sharing) { s.scanned[1] = s.scanned[1][1:] }, []string{"parity_ok"}},
		"an order differs": {func(s *sharing) {
			s.scanned[1] = slices.Clone(s.scanned[1])
			slices.Reverse(s.scanned[1])
		}, []string{"parity_ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.slots, s.absorbed, s.cold, s.scanned = maps.Clone(good.slots), maps.Clone(good.absorbed), maps.Clone(good.cold), maps.Clone(good.scanned)
			c.breakIt(&s)
			mustFail(t, s.judge(), c.want...)
		})
	}
}

// TestSharedBroken: the bucket loses or changes an object under the drive.
func TestSharedBroken(t *testing.T) {
	slotOf := func(s *site, shard segment.Shard) (string, error) {
		return slotFile(s.bucketDir(), segment.SlotPrefix(s.chain(shard)))
	}
	t.Run("a slot is gone", func(t *testing.T) {
		breaking(t, Shared, "published", func(_ context.Context, s *site) error {
			path, err := slotOf(s, 1)
			return errors.Join(err, os.Remove(path))
		}, "owner_published_ok", "nonowner_coldload_from_shared_ok", "parity_ok")
	})
	t.Run("a slot is damaged", func(t *testing.T) {
		breaking(t, Shared, "published", func(_ context.Context, s *site) error {
			path, err := slotOf(s, 0)
			if err != nil {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/3] ^= 1
			return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600))
		}, "nonowner_coldload_from_shared_ok", "crash_recovery_from_shared_ok")
	})
	t.Run("a slot is gone with the disk", func(t *testing.T) {
		breaking(t, Shared, "lost", func(_ context.Context, s *site) error {
			path, err := slotOf(s, 0)
			return errors.Join(err, os.Remove(path))
		}, "crash_recovery_from_shared_ok")
	})
}

// slotFile is the file of the first slot under a prefix.
func slotFile(bucket, prefix string) (string, error) {
	found, err := filepath.Glob(filepath.Join(bucket, prefix+"*"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no slot at %s", prefix)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}
