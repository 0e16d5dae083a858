//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/strandline/strandline/internal/pgserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flag.Parse()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "both:", err)
		os.Exit(1)
	}
}

// settings are a quarter of the memory for pages, and checkpoints that are minutes apart.
// Whatever an acknowledged commit needs is as it comes.
var settings = map[string]string{
	"shared_buffers": "1GB", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "maintenance_work_mem": "256MB", "wal_keep_size": "0",
}

func run(ctx context.Context, args []string) (err error) {
	root, err := os.MkdirTemp("", "strandline-both-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	binary := filepath.Join(root, "strandline")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/strandline")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building strandline (run this from the root of the checkout): %w", err)
	}
	server, err := pgserver.Open(ctx, pgserver.Options{Settings: settings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	dsn, err := url.Parse(server.DSN())
	if err != nil {
		return err
	}
	dsn.User = url.User(dsn.User.Username()) // the password goes by the environment, where no list of processes shows it
	return measure(ctx, binary, append([]string{"bench", "catalog", "--dir", root, "--catalog", dsn.String()}, args...), "PGPASSWORD="+server.Password())
}

// patience is how long a measurement may clean up after Ctrl-C before it is killed.
const patience = 2 * time.Minute

func measure(ctx context.Context, binary string, args []string, env string) error {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bench catalog: %w", err)
	}
	fmt.Fprintf(os.Stderr, "%.0f s\n", time.Since(began).Seconds())
	return nil
}
