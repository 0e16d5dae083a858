package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/bench/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == childFlag {
		return child(args[1], stdout)
	}
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if s.list {
		return list(stdout)
	}
	base, err := os.MkdirTemp(s.Dir, "strandline-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the logs: %w", err)
	}
	defer os.RemoveAll(base) //nolint:errcheck // what stays behind is visible there
	m, err := describe(base)
	if err != nil {
		return err
	}
	if m.FileSystem == "tmpfs" && !s.TmpfsOK {
		return fmt.Errorf("%s is a tmpfs, where fdatasync does nothing: give -dir on a disk, or -tmpfs to try the program out", base)
	}
	r := runner{settings: s, base: base, log: stderr}
	begin := time.Now()
	if err := r.all(ctx); err != nil {
		return err
	}
	m.LoadAfter = load()
	rep := newReport(m, s, r.samples, r.failures, time.Since(begin))
	if err := rep.writeJSON(s.JSON); err != nil {
		return err
	}
	if err := rep.markdown(stdout); err != nil {
		return err
	}
	if n := len(r.failures); n > 0 {
		return fmt.Errorf("%d measurements failed; they stand at the end of the report", n)
	}
	return nil
}

func list(w io.Writer) error {
	for _, p := range peer.All() {
		if _, err := fmt.Fprintf(w, "%-18s %-5s %s\n", p.Name, p.Role, p.Note); err != nil {
			return err
		}
	}
	return nil
}
