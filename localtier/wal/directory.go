package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/strandline/strandline/segment"
)

// listing is what stands in a shard directory, by name.
type listing struct {
	segments []segment.ID // ascending
	tmp      []string     // unfinished files of ours
	spares   []string
	identity bool
}

func list(fsys FS, dir string) (listing, error) {
	var ls listing
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return ls, err
	}
	for _, name := range names {
		if id, ok := segment.ParseFileName(name); ok {
			ls.segments = append(ls.segments, id)
		}
		if _, ok := parseSpareName(name); ok {
			ls.spares = append(ls.spares, name)
		}
		if base, ok := strings.CutSuffix(name, tmpSuffix); ok && isOurs(base) {
			ls.tmp = append(ls.tmp, name)
		}
		ls.identity = ls.identity || name == segment.IdentityFile
	}
	slices.Sort(ls.segments)
	return ls, nil
}

// isOurs says whether the log itself writes name by way of a temporary file.
// Other people's unfinished files are theirs to remove.
func isOurs(name string) bool {
	switch name {
	case segment.IdentityFile, segment.CheckpointFile, segment.ReclaimFile, segment.IndexFile:
		return true
	}
	if stem, ok := strings.CutSuffix(name, ".torn"); ok {
		name = stem + ".seg"
	}
	_, ok := segment.ParseFileName(name)
	return ok
}

// ensureIdentity reads the directory's writer UUID, or makes one for a directory
// that has no segments yet. Segments without it are somebody else's, or half a
// copy: to go on with them as a new writer could fork their chain.
func ensureIdentity(cfg *Config, dir string, ls listing) (segment.Identity, error) {
	fsys := cfg.FS
	if ls.identity {
		return readIdentity(fsys, dir)
	}
	if len(ls.segments) > 0 {
		return segment.Identity{}, fmt.Errorf("%s: %w", dir, ErrNoIdentity)
	}
	u, err := cfg.newUUID(dir)
	if err != nil {
		return segment.Identity{}, fmt.Errorf("writer UUID: %w", err)
	}
	id := segment.Identity{Writer: u}
	b, err := segment.EncodeIdentity(id)
	if err != nil {
		return segment.Identity{}, err
	}
	path := filepath.Join(dir, segment.IdentityFile)
	if err := ReplaceFile(fsys, path, b); err != nil {
		return segment.Identity{}, fmt.Errorf("make %s: %w", path, err)
	}
	return readIdentity(fsys, dir)
}

func readIdentity(fsys FS, dir string) (segment.Identity, error) {
	var id segment.Identity
	_, err := readSidecar(fsys, dir, segment.IdentityFile, func(b []byte) (err error) {
		id, err = segment.DecodeIdentity(b)
		return err
	})
	return id, err
}

// readSidecar reads and decodes one small file; false if it is not there. What
// is there and does not decode is a *segment.CorruptionError that names it.
func readSidecar(fsys FS, dir, name string, decode func([]byte) error) (bool, error) {
	path := filepath.Join(dir, name)
	b, err := ReadFile(fsys, path, sidecarLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, segment.InFile(decode(b), path, 0)
}

// sidecars are the small files that recovery believes or weighs.
type sidecars struct {
	checkpoint *segment.Checkpoint
	reclaim    segment.Reclaim
	index      *segment.Index // nil if absent or invalid: a cache
}

// readTruths reads CHECKPOINT and reclaim.json.
func (s *sidecars) readTruths(fsys FS, dir string) error {
	var cp segment.Checkpoint
	ok, err := readSidecar(fsys, dir, segment.CheckpointFile, func(b []byte) (err error) {
		cp, err = segment.DecodeCheckpoint(b)
		return err
	})
	if err != nil {
		return err
	}
	if ok {
		s.checkpoint = &cp
	}
	_, err = readSidecar(fsys, dir, segment.ReclaimFile, func(b []byte) (err error) {
		s.reclaim, err = segment.DecodeReclaim(b)
		return err
	})
	return err
}

// readIndex reads index.json. A damaged one is as good as none: a power cut may
// leave anything of a file that is never fsynced.
func (s *sidecars) readIndex(fsys FS, dir string) error {
	_, err := readSidecar(fsys, dir, segment.IndexFile, func(b []byte) (err error) {
		s.index, err = segment.DecodeIndex(b)
		return err
	})
	if segment.IsStructural(err) {
		s.index = nil
		return nil
	}
	return err
}
