package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/strandline/strandline/internal/realstore"
)

const bucket = "bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := flag.String("dir", "", "the disk to measure on; default the system's temporary directory")
	flag.Parse()
	if err := run(ctx, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "both:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, args []string) (err error) {
	root, err := os.MkdirTemp(dir, "strandline-both-*")
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
	catalogs := filepath.Join(root, "catalogs")
	if err := os.Mkdir(catalogs, 0o700); err != nil {
		return err
	}
	bench := append([]string{"bench", "auditor", "--dir", catalogs}, args...)
	if err := measure(ctx, binary, bench, "file://"+filepath.Join(root, "bucket"), nil); err != nil {
		return err
	}
	server, err := realstore.Start(ctx, realstore.KindMinio, filepath.Join(root, "minio"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := server.CreateBucket(ctx, bucket); err != nil {
		return err
	}
	env := []string{"MINIO_ACCESS_KEY=" + server.AccessKey, "MINIO_SECRET_KEY=" + server.SecretKey}
	return measure(ctx, binary, bench, fmt.Sprintf("minio://%s/%s?tls=false", server.Endpoint, bucket), env)
}

// patience is how long a measurement may clean up after Ctrl-C before it is killed.
const patience = 2 * time.Minute

func measure(ctx context.Context, binary string, args []string, store string, env []string) error {
	cmd := exec.CommandContext(ctx, binary, append(slices.Clone(args), "--store", store)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bench auditor on %s: %w", store, err)
	}
	fmt.Fprintf(os.Stderr, "%s: %.0f s\n\n", store, time.Since(began).Seconds())
	return nil
}
