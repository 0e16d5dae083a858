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
	"strings"
	"syscall"

	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/miniostore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store := flag.String("store", "file", "file or minio")
	dir := flag.String("dir", "", "an empty directory to work in (default: a temporary one, removed at the end)")
	flag.Parse()
	if err := run(ctx, *store, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "strandline-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	back, done, err := open(ctx, store, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	source, err := goroot(ctx)
	if err != nil {
		return err
	}
	return tell(ctx, options{root: ".", source: source, dir: dir, shards: 4, out: os.Stdout, backend: back})
}

// goroot is the source of the standard library on this machine.
func goroot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "src"), err
}

// open makes a bucket of the kind asked for.
func open(ctx context.Context, store, dir string) (backend, func() error, error) {
	switch store {
	case "file":
		return fileBackend(dir), func() error { return nil }, nil
	case "minio":
		return minioBackend(ctx, dir)
	default:
		return backend{}, nil, fmt.Errorf("--store %s: give file or minio", store)
	}
}

func fileBackend(dir string) backend {
	return backend{
		flags: []string{"--dir", dir},
		open: func(context.Context) (objstore.Driver, error) {
			return fsstore.Open(filepath.Join(dir, "bucket"), fsstore.Options{})
		},
	}
}

func openCatalog(ctx context.Context, path string) (*sqlite.DB, error) {
	return sqlite.Open(ctx, sqlite.Options{Path: path, ReadOnly: true})
}

// minioBackend starts a real MinIO server of its own.
func minioBackend(ctx context.Context, dir string) (backend, func() error, error) {
	server, err := realstore.Start(ctx, realstore.KindMinio, filepath.Join(dir, "minio"))
	if err != nil {
		return backend{}, nil, err
	}
	const bucket = "strandline-demo"
	if err := server.CreateBucket(ctx, bucket); err != nil {
		return backend{}, nil, errors.Join(err, server.Stop())
	}
	u := url.URL{Scheme: "minio", Host: server.Endpoint, Path: "/" + bucket, RawQuery: "tls=false"}
	return backend{
		flags: []string{"--dir", dir, "--store", "standard=" + u.String()},
		env:   []string{"MINIO_ACCESS_KEY=" + server.AccessKey, "MINIO_SECRET_KEY=" + server.SecretKey},
		open: func(ctx context.Context) (objstore.Driver, error) {
			cfg, err := miniostore.ParseURL(u.String())
			if err != nil {
				return nil, err
			}
			cfg.AccessKey, cfg.SecretKey = server.AccessKey, server.SecretKey
			return miniostore.Open(ctx, cfg)
		},
	}, server.Stop, nil
}
