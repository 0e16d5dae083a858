//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/strandline/strandline/internal/pgserver"
	"github.com/strandline/strandline/internal/realstore"
)

const (
	// BucketName is the deployment's.
	BucketName = "e2e"
	prefix     = "tier"
)

// Site is where a deployment runs: a MinIO and a PostgreSQL server with a Gate before each,
// and the built command.
type Site struct {
	Binary  string
	Bucket  *Gate
	Catalog *Gate
	Minio   *realstore.Server

	postgres *pgserver.Server
	// Where processes find bucket and catalog: HOST:PORT of the Gates.
	bucketAt, catalogAt string

	dir     string
	env     []string
	started atomic.Int64
}

// Open builds the command from the checkout that the working directory lies in, and starts
// both servers. Everything lies below dir; Close ends the servers and leaves the files.
func Open(ctx context.Context, dir string) (_ *Site, err error) {
	s := &Site{dir: dir, Binary: filepath.Join(dir, "strandline")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.Binary, "github.com/strandline/strandline/cmd/strandline")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, said)
	}
	if s.Minio, err = realstore.Start(ctx, realstore.KindMinio, filepath.Join(dir, "minio")); err != nil {
		return nil, err
	}
	if err := s.Minio.CreateBucket(ctx, BucketName); err != nil {
		return nil, err
	}
	if s.postgres, err = pgserver.Open(ctx, pgserver.Options{}); err != nil {
		return nil, err
	}
	if s.Bucket, err = OpenGate(s.Minio.Endpoint); err != nil {
		return nil, err
	}
	dsn, err := url.Parse(s.postgres.DSN())
	if err != nil {
		return nil, err
	}
	if s.Catalog, err = OpenGate(dsn.Host); err != nil {
		return nil, err
	}
	s.bucketAt, s.catalogAt = s.Bucket.Address(), s.Catalog.Address()
	s.env = append(os.Environ(), "MINIO_ROOT_USER="+s.Minio.AccessKey, "MINIO_ROOT_PASSWORD="+s.Minio.SecretKey, "PGPASSWORD="+s.postgres.Password())
	return s, nil
}

// Direct has processes that start from now on go to the servers past the Gates.
func (s *Site) Direct() { s.bucketAt, s.catalogAt = s.Bucket.upstream, s.Catalog.upstream }

// Backend are the flags that say where bucket and catalog are. Passwords come by the
// environment.
func (s *Site) Backend() []string { return s.backendAt(s.bucketAt) }

func (s *Site) backendAt(bucket string) []string {
	u := url.URL{Scheme: "postgres", User: url.User("strandline"), Host: s.catalogAt, Path: "/postgres", RawQuery: "sslmode=disable"}
	return []string{"--store", "standard=minio://" + bucket + "/" + BucketName + "/" + prefix + "?tls=false", "--catalog", u.String()}
}

// Command is the command with its arguments and environment, for one who starts it himself;
// it finds the bucket at HOST:PORT, empty: where all do.
func (s *Site) Command(ctx context.Context, bucket string, args ...string) *exec.Cmd {
	if bucket == "" {
		bucket = s.bucketAt
	}
	cmd := exec.CommandContext(ctx, s.Binary, append(args, s.backendAt(bucket)...)...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// Dir is a directory of the site's.
func (s *Site) Dir(name string) string { return filepath.Join(s.dir, name) }

// Close ends both servers and their proxies.
func (s *Site) Close() error {
	var errs []error
	for _, g := range []*Gate{s.Bucket, s.Catalog} {
		if g != nil {
			errs = append(errs, g.Close())
		}
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Close())
	}
	if s.Minio != nil {
		errs = append(errs, s.Minio.Stop())
	}
	return errors.Join(errs...)
}
