package filewatch

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// Every is the longest that a change stays unseen: what is revoked has to end within
	// some seconds.
	Every = 5 * time.Second
	// quiet is how long a folder has to be still before it is looked at: who writes a file in
	// pieces should not be caught in the middle of it.
	quiet = 100 * time.Millisecond
	// restless is when it is looked at all the same.
	restless = time.Second
)

// Watcher calls back until it is closed.
type Watcher struct {
	notify *fsnotify.Watcher
	look   func()
	stop   chan struct{}
	once   sync.Once
	end    sync.WaitGroup
}

// Start watches the folders of these files; look is called after anything moved there,
// and every few seconds. Files may be missing, their folders may not. Close it.
func Start(files []string, look func()) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	for _, file := range files {
		if err := notify.Add(filepath.Dir(file)); err != nil {
			return nil, errors.Join(fmt.Errorf("watching the folder of %s: %w", file, err), notify.Close())
		}
	}
	w := &Watcher{notify: notify, look: look, stop: make(chan struct{})}
	w.end.Go(w.run)
	return w, nil
}

// Close returns when the last call has returned. A second Close does nothing.
func (w *Watcher) Close() (err error) {
	w.once.Do(func() {
		close(w.stop)
		w.end.Wait()
		err = w.notify.Close()
	})
	return err
}

func (w *Watcher) run() {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		case <-w.notify.Errors: //nolint:errcheck // events were lost: look
		case <-w.notify.Events:
		}
		// After a tick, too: a file may just be being written.
		if !w.settle() {
			return
		}
		w.look()
	}
}

// settle waits for the folders to be still; false: the watcher was closed.
func (w *Watcher) settle() bool {
	last := time.NewTimer(restless)
	defer last.Stop()
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		select {
		case <-w.stop:
			return false
		case <-last.C:
			return true
		case <-still.C:
			return true
		case <-w.notify.Events:
			still.Reset(quiet)
		}
	}
}
