package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func TestAffinityJudges(t *testing.T) {
	o := options(t, Affinity)
	o.Shards = 3
	s, err := found(t.Context(), Affinity, &o)
	if err != nil {
		t.Fatal(err)
	}
	good, err := observeAffinity(t.Context(), &o, s)
	if err := errors.Join(err, s.close(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustFail(t, good.judge())
	mustAllFail(t, (&affine{}).judge())
	stream := good.streams[0]
	for name, c := range map[string]struct {
		breakIt func(s *affine)
		want    []string
	}{
		"another shard answered": {func(s *affine) { s.answered[0]++ }, []string{"owner_writes_ok"}},
		"a taken row":            {func(s *affine) { s.refusals[1].err = nil }, []string{"nonowner_refused_ok"}},
		"another error":          {func(s *affine) { s.refusals[1].err = errors.New("no") }, []string{"nonowner_refused_ok"}},
		"owner not named": {func(s *affine) {
			s.refusals[1].err = &localtier.NotOwnerError{Stream: s.refusals[1].stream, Shard: segment.ShardOf(s.refusals[1].stream, 3)}
		}, []string{"nonowner_refused_ok"}},
		"wrong owner": {func(s *affine) { s.refusals[1].err = &localtier.NotOwnerError{Shard: 77, Owner: "x"} }, []string{"nonowner_refused_ok"}},
		"fewer asked": {func(s *affine) { s.refusals = s.refusals[1:] }, []string{"nonowner_refused_ok"}},
		"seq consumed": {func(s *affine) {
			for k := range s.after {
				s.after[k]++
			}
		}, []string{"nonowner_refused_ok"}},
		"file appeared":        {func(s *affine) { s.after["x"] = 0 }, []string{"nonowner_refused_ok"}},
		"owner differs":        {func(s *affine) { s.owners[1].directory = uuid.New() }, []string{"single_writer_invariant"}},
		"one directory twice":  {func(s *affine) { s.owners[1].row, s.owners[1].directory = s.owners[0].row, s.owners[0].row }, []string{"single_writer_invariant"}},
		"rows mixed":           {func(s *affine) { s.owners[1].rows = s.owners[0].rows }, []string{"single_writer_invariant"}},
		"a second writer":      {func(s *affine) { s.owners[2].second = nil }, []string{"single_writer_invariant"}},
		"a writer elsewhere":   {func(s *affine) { s.owners[2].elsewhere = nil }, []string{"single_writer_invariant"}},
		"an owner less":        {func(s *affine) { s.owners = s.owners[1:] }, []string{"single_writer_invariant"}},
		"cold row lost":        {func(s *affine) { s.cold[stream] = s.cold[stream][:0] }, []string{"coldload_read_ok"}},
		"cold row of another":  {func(s *affine) { s.cold[stream] = s.cold[good.streams[1]] }, []string{"coldload_read_ok"}},
		"row lost in recovery": {func(s *affine) { s.resident[stream] = nil }, []string{"crash_recovery_ok"}},
		"seq lost in recovery": {func(s *affine) { s.next[1]-- }, []string{"crash_recovery_ok"}},
		"a shard did not come": {func(s *affine) { s.next = s.next[1:] }, []string{"crash_recovery_ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.answered, s.refusals, s.owners, s.next = slices.Clone(good.answered), slices.Clone(good.refusals), slices.Clone(good.owners), slices.Clone(good.next)
			s.after, s.cold, s.resident = maps.Clone(good.after), maps.Clone(good.cold), maps.Clone(good.resident)
			c.breakIt(&s)
			mustFail(t, s.judge(), c.want...)
		})
	}
}

// TestAffinityBroken: a shard's directory is taken away, or another's put in its place.
func TestAffinityBroken(t *testing.T) {
	t.Run("a directory is gone", func(t *testing.T) {
		breaking(t, Affinity, "killed", func(_ context.Context, s *site) error {
			return os.RemoveAll(s.diskDir("one", 1))
		}, "crash_recovery_ok")
	})
	t.Run("a refused row is there after all", func(t *testing.T) {
		breaking(t, Affinity, "refused", func(ctx context.Context, s *site) error {
			_, err := s.replicas[0].Append(ctx, onShard(executions(2, 2), 2, 0)[0], []segment.Row{{Payload: []byte("stray")}}, localtier.AckLocal)
			return err
		}, "single_writer_invariant", "coldload_read_ok", "crash_recovery_ok")
	})
	t.Run("two shards have changed places", func(t *testing.T) {
		breaking(t, Affinity, "killed", func(_ context.Context, s *site) error {
			a, b := s.diskDir("one", 0), s.diskDir("one", 1)
			return errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b))
		}, "crash_recovery_ok")
	})
}

func TestExecutions(t *testing.T) {
	names := executions(5, 3)
	for s := range segment.Shard(5) {
		if got := onShard(names, 5, s); len(got) != 3 {
			t.Errorf("shard %d has %v", s, got)
		}
	}
	if len(names) != 15 {
		t.Error(fmt.Sprint(names))
	}
}
