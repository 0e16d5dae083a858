package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A log of ours in steady state writes over the files of segments that it has given
// up. A new one has none. So files that were written before are lent to it as its
// spare files, and taken back after: filling, publishing and giving up segments before
// each measurement would say the same, and take longer than the measurement.

// spareName is how localtier/wal names its spare files; a test holds that it takes them.
func spareName(n int) string { return fmt.Sprintf("spare-%016x.free", n) }

// Spares are files full of written blocks.
type Spares struct {
	dir   string
	bytes int64 // of each
	next  int
}

// NewSpares keeps files of a segment's size in dir.
func NewSpares(dir string, segmentBytes int) (*Spares, error) {
	return &Spares{dir: dir, bytes: int64(segmentBytes)}, os.MkdirAll(dir, 0o755)
}

// Lend moves n files into the directory of a log that does not exist yet, and makes
// those that are missing.
func (s *Spares) Lend(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	have, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil {
		return err
	}
	for i := range n {
		if i == len(have) {
			name, err := s.fill()
			if err != nil {
				return fmt.Errorf("fill a spare file: %w", err)
			}
			have = append(have, name)
		}
		if err := os.Rename(have[i], filepath.Join(dir, spareName(i))); err != nil {
			return err
		}
	}
	return nil
}

// fill writes and syncs a file of zeros.
func (s *Spares) fill() (name string, err error) {
	f, err := os.Create(s.name())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < s.bytes; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, off); err != nil {
			return "", err
		}
	}
	return f.Name(), f.Sync()
}

func (s *Spares) name() string {
	s.next++
	return filepath.Join(s.dir, fmt.Sprint(s.next))
}

// TakeBack moves what a removed log may leave: whole segments and spare files. Others
// are too short to be lent again.
func (s *Spares) TakeBack(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() < s.bytes*9/10 || info.Size() > s.bytes {
			return err
		}
		return os.Rename(path, s.name())
	})
}
