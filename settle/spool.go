package settle

import (
	"errors"
	"fmt"
	"os"
)

// forget gives the memory of a source's ranges back: another bucket is asked.
func (s *sources) forget(src *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range src.ranges {
		if f.mem != nil {
			s.memory += f.n
			f.mem = nil
		}
	}
}

// keep puts fetched bytes into memory or into the spool.
func (s *sources) keep(f *fetched, b []byte) error {
	s.mu.Lock()
	if f.n <= s.memory {
		s.memory -= f.n
		s.mu.Unlock()
		f.mem = b
		return nil
	}
	file, err := s.spoolFile()
	f.at = s.end
	s.end += f.n
	s.mu.Unlock()
	if err == nil {
		_, err = file.WriteAt(b, f.at)
	}
	if err != nil {
		return fmt.Errorf("spool fetched bytes (free space in %s, or raise fetch-bytes): %w", s.dir, err)
	}
	return nil
}

// spoolFile makes the spool. It is unlinked at once, so no crash leaves it. s.mu is
// held.
func (s *sources) spoolFile() (*os.File, error) {
	if s.spool != nil {
		return s.spool, nil
	}
	f, err := os.CreateTemp(s.dir, "strandline-settle-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.spool = f
	return f, nil
}

// close frees the spool; the memory goes with s.
func (s *sources) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool == nil {
		return nil
	}
	return s.spool.Close()
}
