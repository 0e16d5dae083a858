package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// binary is the built strandline with the flags that say where the deployment is.
type binary struct {
	path    string
	backend []string
	env     []string
}

// build compiles the command from the repository's root.
func build(ctx context.Context, root, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/strandline")
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, said)
	}
	return nil
}

func (b *binary) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.path, append(append([]string{name}, args...), b.backend...)...)
	cmd.Env = append(os.Environ(), b.env...)
	return cmd
}

// json runs a command and decodes its answer; exit codes other than those allowed fail.
func (b *binary) json(ctx context.Context, into any, allowed []int, name string, args ...string) error {
	cmd := b.command(ctx, name, append(args, "--json")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode()
	for _, ok := range allowed {
		if code == ok {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("strandline %s: %w\n%s", name, err, errs.Bytes())
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("strandline %s printed no JSON: %w\n%.500s", name, err, out.Bytes())
	}
	return nil
}

// server is a running `strandline up`.
type server struct {
	cmd     *exec.Cmd
	url     string
	stopped stoppedLine
	logs    bytes.Buffer
	drained chan struct{}
}

// stoppedLine is what up logs when it has published everything.
type stoppedLine struct {
	Msg      string           `json:"msg"`
	Requests map[string]int64 `json:"requests"`
}

// up starts the server and waits until it says where it listens.
func (b *binary) up(ctx context.Context, args ...string) (*server, error) {
	s := &server{cmd: b.command(ctx, "up", append([]string{"--http", "127.0.0.1:0"}, args...)...), drained: make(chan struct{})}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.drained)
		s.watchLogs(bufio.NewScanner(stderr))
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = s.cmd.Process.Kill() // it did not come up; Wait reports why
		<-s.drained
		return nil, fmt.Errorf("strandline up did not start: %w\n%s", errors.Join(err, s.cmd.Wait()), s.logs.Bytes())
	}
	fields := strings.Fields(line)
	s.url = fields[len(fields)-1]
	return s, nil
}

func (s *server) watchLogs(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l stoppedLine
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "stopped" {
			s.stopped = l
		}
		s.logs.Write(lines.Bytes())
		s.logs.WriteByte('\n')
	}
}

// stop sends SIGTERM and waits; it returns the peak memory in bytes (0 where the
// system has no /proc).
func (s *server) stop() (peak int64, err error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	deadline := time.AfterFunc(5*time.Minute, func() { _ = s.cmd.Process.Kill() }) // Wait reports the kill
	defer deadline.Stop()
	peak = s.watchMemory()
	if err := s.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("strandline up ended badly: %w\n%s", err, s.logs.Bytes())
	}
	return peak, nil
}

// watchMemory reads the server's high-water mark until it has ended. (Its rusage
// would not do: it begins with the memory of whoever forked it.)
func (s *server) watchMemory() (peak int64) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)); err == nil {
			peak = max(peak, highWater(status))
		}
		select {
		case <-s.drained:
			return peak
		case <-look.C:
		}
	}
}

// highWater is VmHWM of a /proc status, in bytes; 0 if it is not there.
func highWater(status []byte) int64 {
	_, rest, ok := bytes.Cut(status, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		return 0
	}
	return kib << 10
}
