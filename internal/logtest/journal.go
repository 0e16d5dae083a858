package logtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Journal is what was logged so far. Any number may write and read.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	wake chan struct{}
}

// New is an empty one.
func New() *Journal { return &Journal{wake: make(chan struct{}, 1)} }

func (j *Journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return j.text.Write(b)
}

func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Reset forgets what was logged.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Reset()
}

// Until waits for a text to stand in the log. One waits at a time.
func (j *Journal) Until(t *testing.T, text string) {
	t.Helper()
	end := time.After(20 * time.Second)
	for !strings.Contains(j.String(), text) {
		select {
		case <-j.wake:
		case <-end:
			t.Fatalf("the log never says %q:\n%s", text, j)
		}
	}
}
