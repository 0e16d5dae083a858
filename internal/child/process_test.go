//go:build unix

package child

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trapping says so, then runs until a signal of its choice.
const trapping = `trap 'exit 3' TERM; echo up >&2; while :; do sleep 0.01; done`

func launched(t *testing.T) *Process {
	t.Helper()
	p, err := Launch("sh", filepath.Join(t.TempDir(), "log"), exec.Command("/bin/sh", "-c", trapping))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // most have ended
	err = Poll(t.Context(), time.Minute, "it is up", func() (bool, error) { return strings.Contains(p.Said(), "up"), nil })
	if err != nil || p.Ended() {
		t.Fatalf("ended %v, %v", p.Ended(), err)
	}
	return p
}

func TestProcessStop(t *testing.T) {
	p := launched(t)
	if code, err := p.Stop(); code != 3 || err != nil || !p.Ended() {
		t.Fatalf("code %d, %v", code, err)
	}
	if err := errors.Join(p.Signal(0), p.Kill(), p.Wait(t.Context())); err != nil {
		t.Errorf("of one that ended: %v", err)
	}
	if text := (&EndedError{p}).Error(); !strings.Contains(text, "exit status 3") || !strings.HasSuffix(text, "up\n") {
		t.Error(text)
	}
}

func TestProcessWaitKills(t *testing.T) {
	p := launched(t)
	cause := errors.New("no longer")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.Wait(ctx); !errors.Is(err, cause) || !p.Ended() || p.Code() != -1 {
		t.Errorf("ended %v, %v", p.Ended(), err)
	}
}

func TestLaunchNothing(t *testing.T) {
	if _, err := Launch("none", filepath.Join(t.TempDir(), "log"), exec.Command(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("started what is not there")
	}
}

func TestPollFatal(t *testing.T) {
	fatal, asked := errors.New("never"), 0
	err := Poll(t.Context(), time.Minute, "it", func() (bool, error) {
		asked++
		if asked < 2 {
			return false, errors.New("not yet")
		}
		return false, FatalError{fatal}
	})
	if !errors.Is(err, fatal) || asked != 2 {
		t.Errorf("%v after %d", err, asked)
	}
}
