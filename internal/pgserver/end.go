//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Stop ends the server as an operator would (fast: clients are cut off, everything is
// flushed). A stopped server may be restarted.
func (s *Server) Stop() error {
	cmd := s.take()
	if cmd == nil {
		return nil
	}
	pid := cmd.Process.Pid
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("ending postgres %d: %w", pid, err)
	}
	if !awaitEnd(stopTimeout, pid) {
		return errors.Join(fmt.Errorf("postgres %d does not stop within %s", pid, stopTimeout), s.killed(cmd))
	}
	return s.reaped(cmd)
}

// Kill ends the server and all its children with SIGKILL, as a crash would.
func (s *Server) Kill() error {
	cmd := s.take()
	if cmd == nil {
		return nil
	}
	return s.killed(cmd)
}

// killed stops the server before its children are listed: it must not make one more.
func (s *Server) killed(cmd *exec.Cmd) error {
	pid := cmd.Process.Pid
	_ = cmd.Process.Signal(syscall.SIGSTOP) // if it has ended, the next signal says so, and that is fine
	all := append([]int{pid}, childrenOf(pid)...)
	for _, id := range all {
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d of postgres %d: %w", id, pid, err)
		}
	}
	// A restart is refused while a child still holds the old shared memory.
	if !awaitEnd(stopTimeout, all...) {
		return fmt.Errorf("postgres %d and its children %v do not end", pid, all[1:])
	}
	return s.reaped(cmd)
}

// Restart runs the server again on the same port and data, after Stop if it still runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.run(ctx)
}

// Close ends the server for good and removes its directory.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), s.keeper.release())
}

// Running says whether the server was started and not ended by us.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

func (s *Server) take() *exec.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := s.cmd
	s.cmd = nil
	return cmd
}

// reaped tells the keeper first: after the wait the number may be another process's.
func (s *Server) reaped(cmd *exec.Cmd) error {
	if err := s.keeper.watch(0); err != nil {
		return err
	}
	_ = cmd.Wait() // how it ended is no one's question: we end it by signals
	return nil
}

// awaitEnd waits until processes are gone.
func awaitEnd(atMost time.Duration, pids ...int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	err := until(ctx, "a server ends", func(context.Context) (bool, error) {
		for _, pid := range pids {
			if !gone(pid) {
				return false, nil
			}
		}
		return true, nil
	})
	return err == nil
}
