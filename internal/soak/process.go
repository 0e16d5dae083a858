//go:build unix

package soak

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/strandline/strandline/internal/child"
)

// launch starts the command with these arguments. Its standard output goes to out, its
// standard error, behind the arguments, to a file of its own.
func (s *site) launch(name string, out io.Writer, args ...string) (*child.Process, error) {
	log := filepath.Join(s.logs, fmt.Sprintf("%04d-%s.log", s.started.Add(1), name))
	if err := os.WriteFile(log, fmt.Appendf(nil, "%q\n", args), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.binary, args...)
	cmd.Env, cmd.Dir, cmd.Stdout = s.env, s.dir, out
	return child.Launch(name, log, cmd)
}

// run is a command that ends by itself: its output and exit code.
func (s *site) run(ctx context.Context, name string, args ...string) (out []byte, p *child.Process, err error) {
	f, err := os.CreateTemp(s.dir, "out-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		_ = f.Close()           // only read from here on
		_ = os.Remove(f.Name()) // it goes with the directory at the latest
	}()
	if p, err = s.launch(name, f, args...); err != nil {
		return nil, nil, err
	}
	if err := p.Wait(ctx); err != nil {
		return nil, p, err
	}
	out, err = os.ReadFile(f.Name())
	return out, p, err
}
