package localtier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/strandline/strandline/localtier/wal"
)

// uploadsDir holds a file for each multipart upload that has not ended, so that one
// which a crash left behind is aborted at the next start, not billed for ever.
const uploadsDir = "uploads"

type uploadRecord struct {
	Key string `json:"key"`
	ID  string `json:"id"`
}

func (s *shardLog) uploadPath(id string) string {
	return filepath.Join(s.dir, uploadsDir, fmt.Sprintf("%016x.json", xxhash.Sum64String(id)))
}

// recordUpload is called before the first part is sent.
func (s *shardLog) recordUpload(key, id string) error {
	if s.wal == nil {
		return nil // CloseChain has no directory: the auditor's sweep finds what it leaves
	}
	b, err := json.Marshal(uploadRecord{Key: key, ID: id})
	if err != nil {
		return err
	}
	return wal.ReplaceFile(s.fs(), s.uploadPath(id), b)
}

// forgetUpload is called when the upload exists no longer. A record that stays costs
// one abort of nothing.
func (s *shardLog) forgetUpload(id string) {
	if s.wal == nil {
		return
	}
	if err := s.fs().Remove(s.uploadPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("record of an ended upload stays", "chain", s.chain.String(), "error", err)
	}
}

// abortLeftovers aborts what an earlier process left behind. It runs before the
// publisher starts, so that no upload of ours is under way. What cannot be aborted now
// is tried again at the next start.
func (s *shardLog) abortLeftovers(ctx context.Context) {
	if len(s.bucket.Set) == 0 {
		return // an ended epoch's directory: the auditor's sweep finds its uploads
	}
	names, err := s.fs().ReadDir(filepath.Join(s.dir, uploadsDir))
	if err != nil {
		s.log.Warn("records of uploads cannot be listed", "chain", s.chain.String(), "error", err)
		return
	}
	for _, name := range names {
		if err := s.abortLeftover(ctx, filepath.Join(s.dir, uploadsDir, name)); err != nil {
			s.log.Warn("an unfinished upload stays", "chain", s.chain.String(), "record", name, "error", err)
		}
	}
}

func (s *shardLog) abortLeftover(ctx context.Context, path string) error {
	b, err := wal.ReadFile(s.fs(), path, maxUploadRecord)
	if err != nil {
		return err
	}
	var u uploadRecord
	if err := json.Unmarshal(b, &u); err != nil {
		return fmt.Errorf("record of an upload: %w", err)
	}
	if err := s.bucket.Set.First().Abort(ctx, u.Key, u.ID); err != nil {
		return err
	}
	s.log.Info("aborted an unfinished upload", "chain", s.chain.String(), "key", u.Key)
	return s.fs().Remove(path)
}

// maxUploadRecord bounds a record: a key of 1,024 bytes and an upload id.
const maxUploadRecord = 16 << 10

// fs is the file layer of the log below.
func (s *shardLog) fs() wal.FS {
	if s.cfg.WAL.FS != nil {
		return s.cfg.WAL.FS
	}
	return wal.OSFS(s.cfg.WAL.FullFsync)
}
