//go:build unix

package pgha

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command, built by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(main(m)) }

func main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "strandline-pgha-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays there is a binary
	binary = filepath.Join(dir, "strandline")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/strandline/strandline/cmd/strandline").CombinedOutput()
	if err == nil {
		err = lookAtSources("../..")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// lookAtSources has the test cache know that these tests depend on the command: the cache
// sees what a test's own process looks at, and the compiler is another one.
func lookAtSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			_, err = os.Stat(path)
		}
		return err
	})
}

// process is a running command.
type process struct {
	name string
	cmd  *exec.Cmd
	url  string // where it serves, if it does
	done chan struct{}
	log  *transcript
}

// transcript is what a process says on its standard error.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a command until the test's end. serves: it prints where, first thing.
func (s *site) start(name string, serves bool, args ...string) *process {
	s.t.Helper()
	p := &process{name: name, done: make(chan struct{}), log: &transcript{}}
	p.cmd = exec.Command(s.binary, append(args, s.backend()...)...)
	p.cmd.Env, p.cmd.Stderr, p.cmd.Dir = s.env(), p.log, s.dir
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n') // empty if it ended before
		first <- line
		_, _ = io.Copy(io.Discard, lines) // until it ends
		_ = p.cmd.Wait()                  // asked for by code
		close(p.done)
	}()
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", name, last(p.log.String(), 6000))
		}
	})
	if !serves {
		return p
	}
	select {
	case line := <-first:
		if f := strings.Fields(line); len(f) >= 3 {
			p.url = f[2]
			return p
		}
		s.t.Fatalf("%s did not start: %q\n%s", name, line, p.log)
	case <-time.After(startWithin):
		s.t.Fatalf("%s does not start\n%s", name, p.log)
	}
	return nil
}

// startWithin bounds a start on a loaded machine.
const startWithin = 30 * time.Second

// last is a text's end.
func last(text string, n int) string { return text[max(0, len(text)-n):] }

// kill ends it; only its own id is signalled.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// stop asks it to end, and gives its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(startWithin):
		t.Errorf("%s does not stop\n%s", p.name, last(p.log.String(), 3000))
		p.kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// run is a command that ends by itself.
func (s *site) run(args ...string) (out, said string, code int) {
	s.t.Helper()
	cmd := exec.Command(s.binary, append(args, s.backend()...)...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = s.env(), &stdout, &stderr, s.dir
	err := cmd.Run()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}
