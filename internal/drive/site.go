package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/segment"
)

// ErrDir: a directory that is not a drive's.
var ErrDir = errors.New("directory of a drive")

// markFile says that a directory is a drive's, and may be cleared by the next one.
const markFile = "drive.json"

// site is the deployment of one drive.
type site struct {
	dir      string
	catalog  *sqlite.DB
	store    *objstore.Store
	classes  objstore.Classes
	top      catalog.Topology
	reader   *coldload.Reader
	log      *slog.Logger
	replicas []*replica // all that were ever started
	at       func(ctx context.Context, moment string, s *site) error
}

// The shortest graces that a deployment may have: drives wait for them.
const (
	readGrace   = catalog.LeastReadGrace
	orphanGrace = catalog.LeastOrphanGrace
)

// found clears the directory and founds a deployment in it.
func found(ctx context.Context, name string, o *Options) (_ *site, err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDir, err)
	}
	if err := clearDir(dir, name); err != nil {
		return nil, err
	}
	s := &site{dir: dir, classes: objstore.Classes{}, log: o.Logger, at: o.at}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.at == nil {
		s.at = func(context.Context, string, *site) error { return nil }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	driver, err := fsstore.Open(s.bucketDir(), fsstore.Options{Create: true})
	if err != nil {
		return nil, err
	}
	if s.store, err = objstore.New(driver, objstore.Config{}); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	s.classes[string(segment.ClassStandard)] = objstore.Set{s.store}
	if s.catalog, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "catalog.db"), Create: true}); err != nil {
		return nil, err
	}
	if err := s.deploy(ctx, name, o.Shards); err != nil {
		return nil, err
	}
	s.reader, err = coldload.New(s.catalog, s.classes, coldload.Config{})
	return s, err
}

// deploy makes the first epoch. It is seed 000's plain shared tier: slots stand until
// retention gives them up, and nothing settles them.
func (s *site) deploy(ctx context.Context, name string, shards uint32) error {
	if name == Recovery || name == GC {
		shards = 1
	}
	if _, err := check.Ensure(ctx, s.catalog, s.classes); err != nil {
		return err
	}
	if _, err := s.catalog.SeedReadGrace(ctx, readGrace); err != nil {
		return err
	}
	if _, err := s.catalog.SeedOrphanGrace(ctx, orphanGrace); err != nil {
		return err
	}
	var err error
	s.top, err = check.EnsureEpoch(ctx, s.catalog, s.classes, catalog.Topology{
		Epoch: 1, Shards: shards, Class: segment.ClassStandard, Buckets: []string{s.store.Name()},
		State: catalog.TopologyOpen,
	})
	return err
}

func (s *site) bucketDir() string { return filepath.Join(s.dir, "bucket") }

func (s *site) chain(shard segment.Shard) segment.Chain {
	return segment.Chain{Epoch: s.top.Epoch, Shard: shard}
}

// close ends what still runs. A replica that was killed is closed already.
func (s *site) close(ctx context.Context) error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.stop(ctx))
	}
	if s.catalog != nil {
		errs = append(errs, s.catalog.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// slots lists the slots of a chain that stand in the bucket, in order.
func (s *site) slots(ctx context.Context, shard segment.Shard) (ids []segment.ID, err error) {
	for info, err := range s.store.ListSorted(ctx, segment.SlotPrefix(s.chain(shard))) {
		if err != nil {
			return nil, fmt.Errorf("list the slots of shard %d: %w", shard, err)
		}
		k, err := segment.ParseKey(info.Key)
		if err != nil {
			return nil, err
		}
		ids = append(ids, k.ID)
	}
	return ids, nil
}

// clearDir makes dir an empty directory of a drive.
func clearDir(dir, name string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make --dir: %w", err)
		}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDir, err)
	}
	if err := former(dir, entries); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markFile {
			continue // until the end: what a crash leaves is still a former drive's
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("clear the former drive: %w", err)
		}
	}
	mark, err := json.Marshal(map[string]string{"drive": name})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, markFile), append(mark, '\n'), 0o644); err != nil {
		return fmt.Errorf("mark the directory as a drive's: %w", err)
	}
	return nil
}

// former refuses a directory that holds anything that no drive made.
func former(dir string, entries []fs.DirEntry) error {
	if len(entries) == 0 {
		return nil
	}
	marked := false
	for _, e := range entries {
		n := e.Name()
		marked = marked || n == markFile && e.Type().IsRegular()
		if n != markFile && n != "bucket" && !strings.HasPrefix(n, "catalog.db") && !strings.HasPrefix(n, "disk-") {
			return fmt.Errorf("%w: %s holds %s, which no drive made; give an empty directory", ErrDir, dir, n)
		}
	}
	if !marked {
		return fmt.Errorf("%w: %s is not empty and has no %s, so no drive made it; give an empty directory", ErrDir, dir, markFile)
	}
	return nil
}

// segmentFiles are those of a shard directory.
func segmentFiles(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.seg")) }

// config of the drives' writers: segments seal when the drive says so.
func config() localtier.Config {
	c := localtier.Config{MinFreeDisk: -1, WriterVersion: "strandline drive", HydrateAll: true}
	c.WAL.SegmentAge = maxAge
	return c
}
