package drive

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func TestSharedGCJudges(t *testing.T) {
	o := options(t, SharedGC)
	s, err := found(t.Context(), SharedGC, &o)
	if err != nil {
		t.Fatal(err)
	}
	good, err := observeSharedGC(t.Context(), &o, s)
	if err := errors.Join(err, s.close(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustFail(t, good.judge())
	mustAllFail(t, (&pruned{}).judge())
	for name, c := range map[string]struct {
		breakIt func(s *pruned)
		want    []string
	}{
		"the owner lacks a row":  {func(s *pruned) { s.owner = s.owner[1:] }, []string{"owner_gapless_from_base"}},
		"the owner serves below": {func(s *pruned) { s.ownerBelow = nil }, []string{"owner_gapless_from_base"}},
		"the reader lacks a row": {func(s *pruned) { s.cold = s.cold[:len(s.cold)-1] }, []string{"nonowner_coldload_coherent"}},
		"the reader sees more":   {func(s *pruned) { s.cold = s.acked }, []string{"nonowner_coldload_coherent"}},
		"the reader's below":     {func(s *pruned) { s.coldBelow = errors.New("no") }, []string{"nonowner_coldload_coherent"}},
		"the heir's row":         {func(s *pruned) { s.heir = s.heir[1:] }, []string{"newowner_hydrate_coherent"}},
		"the heir pulled more":   {func(s *pruned) { s.heirBase-- }, []string{"newowner_hydrate_coherent"}},
		"the heir un-reclaims":   {func(s *pruned) { s.heirBelow = &localtier.NotLocalError{First: 1} }, []string{"newowner_hydrate_coherent"}},
		"the heir never filled":  {func(s *pruned) { s.hydrated = false }, []string{"newowner_hydrate_coherent"}},
		"the heir's cursor":      {func(s *pruned) { s.cursor++ }, []string{"newowner_hydrate_coherent"}},
		"the heir's seq":         {func(s *pruned) { s.next = 1 }, []string{"newowner_hydrate_coherent"}},
		"a slot is left":         {func(s *pruned) { s.after = append([]segment.ID{s.through}, s.after...) }, []string{"shared_pruned"}},
		"one too many went":      {func(s *pruned) { s.after = s.after[1:] }, []string{"shared_pruned"}},
		"nothing went":           {func(s *pruned) { s.after = s.before }, []string{"shared_pruned", "bounded"}},
		"ahead of the consumer":  {func(s *pruned) { s.ack = s.watermark - 1; s.cursor = s.ack }, []string{"bounded"}},
		"another shard's row":    {func(s *pruned) { s.othersThere = s.othersThere[1:] }, []string{"other_shards_untouched"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.after = slices.Clone(good.after)
			c.breakIt(&s)
			mustFail(t, s.judge(), c.want...)
		})
	}
}

func TestSharedGCBroken(t *testing.T) {
	t.Run("a retained slot is gone", func(t *testing.T) {
		breaking(t, SharedGC, "lost", func(_ context.Context, s *site) error {
			path, err := slotFile(s.bucketDir(), segment.SlotPrefix(s.chain(0)))
			return errors.Join(err, os.Remove(path))
		}, "newowner_hydrate_coherent")
	})
	t.Run("another shard's slot is gone", func(t *testing.T) {
		breaking(t, SharedGC, "audited", func(_ context.Context, s *site) error {
			path, err := slotFile(s.bucketDir(), segment.SlotPrefix(s.chain(1)))
			return errors.Join(err, os.Remove(path))
		}, "other_shards_untouched")
	})
}
