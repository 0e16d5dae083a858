package localtier

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// asideBytes is how much lies in quarantine, whatever it is.
func asideBytes(fsys wal.FS, dir string) (total int64, err error) {
	entries, err := aside(fsys, dir)
	if err != nil {
		return 0, err
	}
	for _, q := range entries {
		names, err := fsys.ReadDir(q.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			if _, ok := segment.ParseFileName(name); !ok {
				continue
			}
			n, err := wal.FileSize(fsys, filepath.Join(q.Dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// asideWeight remembers how much lies in quarantine: Ready is asked often.
type asideWeight struct {
	mu    sync.Mutex
	asked time.Time
	bytes int64
}

// asideEvery is how long an answer is good for.
const asideEvery = 5 * time.Second

// quarantineRefusal says that more was set aside than a person should leave there.
func (w *Writer) quarantineRefusal() error {
	n, err := w.Quarantined()
	if err != nil {
		return err
	}
	if n <= w.opts.Config.QuarantineMax {
		return nil
	}
	return &QuarantineError{Dir: filepath.Join(w.opts.Dir, quarantineDir), Bytes: n, Max: w.opts.Config.QuarantineMax}
}

// Quarantined is how many bytes lie in quarantine, as of some seconds ago at most.
func (w *Writer) Quarantined() (int64, error) {
	a := &w.aside
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := w.opts.Now(); a.asked.IsZero() || now.Sub(a.asked) >= asideEvery {
		n, err := asideBytes(w.opts.fs(), w.opts.Dir)
		if err != nil {
			return 0, fmt.Errorf("weigh what is in quarantine: %w", err)
		}
		a.asked, a.bytes = now, n
	}
	return a.bytes, nil
}
