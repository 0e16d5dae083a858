package localtier

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Reconcile (03 §3 step 5): a directory whose segments do not continue the chain goes to
// quarantine as a whole, a fresh one takes the chain, and then the catalog is asked what
// of the old one the chain has anyway.
//
//	setAside    close, rename to quarantine/, open a fresh directory with a new IDENTITY
//	judgeAside  once nothing of it can enter the chain any more: the verdict, then unlink
//	            what was proven absorbed; nothing left, no directory

// errSetAside: the directory is in quarantine and a fresh one is open; look again.
var errSetAside = errors.New("the directory was set aside")

// setAside moves the shard's directory to quarantine and opens a fresh one in its place.
// It returns errSetAside.
func (s *shardLog) setAside(ctx context.Context, why error) error {
	to, err := s.moveAside(ctx)
	if err != nil {
		return err
	}
	s.log.Warn("shard directory set aside", "chain", s.chain.String(), "writer", s.owner.String(), "to", to, "reason", why)
	// A crash here leaves no directory: the next start makes one, empty, and acquires.
	if err := s.at(StepSetAside); err != nil {
		return err
	}
	s.index = index{}
	s.term = 0
	if err := s.recover(ctx); err != nil {
		return fmt.Errorf("open a fresh directory: %w", err)
	}
	return errSetAside
}

// moveAside renames the directory as a whole, so that it is in quarantine or in its place,
// never in both or half. It closes the log.
func (s *shardLog) moveAside(ctx context.Context) (to string, err error) {
	s.abortLeftovers(ctx) // what cannot be aborted now, the auditor's sweep finds
	before, err := s.segmentFiles()
	if err != nil {
		return "", err
	}
	log := s.wal
	s.wal = nil
	if err := log.Close(); err != nil {
		return "", fmt.Errorf("close the log before it is set aside: %w", err)
	}
	// The log's lock went with it. Whoever takes the directory in this gap keeps it, and
	// whoever had it meanwhile may have changed what was decided on.
	lock, err := s.fs().Lock(filepath.Join(s.dir, segment.LockFile))
	if err != nil {
		return "", err
	}
	// Its file moves along, so from the rename on it locks nothing that others open; who
	// opened it before looks again, once it has the lock, whether it still stands here.
	defer func() { err = errors.Join(err, lock.Close()) }()
	if after, err := s.segmentFiles(); err != nil || !slices.Equal(before, after) {
		return "", s.refuse(wal.ErrLocked, err, "another process had the directory a moment ago: start again")
	}
	root := filepath.Join(filepath.Dir(s.dir), quarantineDir)
	if err := s.fs().MkdirAll(root); err != nil {
		return "", fmt.Errorf("make the quarantine: %w", err)
	}
	if to, err = s.freeName(root); err != nil {
		return "", err
	}
	// A crash before this leaves the directory as it was found, and the same decision.
	if err := s.fs().Rename(s.dir, to); err != nil {
		return "", fmt.Errorf("set %s aside: %w; move it aside by hand to keep its rows, and start with an empty one", s.dir, err)
	}
	// A power cut here may show it at either place, whole: files are reached by one name.
	return to, errors.Join(s.fs().SyncDir(root), s.fs().SyncDir(filepath.Dir(s.dir)))
}

// fileOf is a file's name and size.
type fileOf struct {
	name string
	size int64
}

func (s *shardLog) segmentFiles() ([]fileOf, error) {
	names, err := s.fs().ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []fileOf
	for _, name := range names {
		if _, ok := segment.ParseFileName(name); !ok {
			continue
		}
		size, err := wal.FileSize(s.fs(), filepath.Join(s.dir, name))
		if err != nil {
			return nil, err
		}
		out = append(out, fileOf{name, size})
	}
	slices.SortFunc(out, func(a, b fileOf) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// freeName is the first name in quarantine that is not taken. Renaming puts a directory
// in the place of an empty one, so a name is never used twice.
func (s *shardLog) freeName(root string) (string, error) {
	names, err := s.fs().ReadDir(root)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name := asideName(s.chain, s.owner, n)
		if !slices.Contains(names, name) && !slices.Contains(names, removedPrefix+name) {
			return filepath.Join(root, name), nil
		}
	}
}

// leaveClosed is what a writer does with a chain that has ended: set aside what it has.
func (s *shardLog) leaveClosed(ctx context.Context, row catalog.ChainRow) error {
	closed := s.refuse(ErrChainClosed, nil, "its epoch is over: write to the open one (`strandline topology show`)")
	if s.wal.State().Segment == 0 {
		return closed
	}
	to, err := s.moveAside(ctx)
	if err != nil {
		return errors.Join(closed, err)
	}
	s.log.Info("directory of an ended chain set aside", "chain", s.chain.String(), "to", to, "term", row.Term)
	// A crash here leaves it unjudged: the next start of any epoch judges it.
	if err := s.at(StepSetAside); err != nil {
		return errors.Join(closed, err)
	}
	return errors.Join(closed, s.judgeAside(ctx))
}

// leaveHeld is what a writer does with a chain that another owns and has begun: what lies
// here never links again, so its rows are set aside now, to be salvaged to that owner.
// They would have to wait for the owner's end, or to fence it, otherwise.
func (s *shardLog) leaveHeld(ctx context.Context, row catalog.ChainRow, d decision, held error) error {
	if d.way == waySetAside && row.Owner != s.owner {
		to, err := s.moveAside(ctx)
		if err != nil {
			return errors.Join(held, err)
		}
		s.log.Warn("shard directory set aside", "chain", s.chain.String(), "writer", s.owner.String(), "to", to, "reason", s.whyLeftover(row))
		if err := s.at(StepSetAside); err != nil {
			return errors.Join(held, err)
		}
	}
	// A crash before this leaves it unjudged: the next start comes by here again.
	if err := s.judgeAside(ctx); err != nil {
		return errors.Join(held, err)
	}
	return held
}
