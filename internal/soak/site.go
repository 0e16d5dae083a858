//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultproxy"
	"github.com/strandline/strandline/objstore/miniostore"
)

const (
	bucketName = "soak"
	prefix     = "tier"
	// shards is what a writer founds a deployment with.
	shards = 4
)

// site is the deployment: the server, the counting proxy before it, the catalog's file.
type site struct {
	dir, logs string
	binary    string
	env       []string
	backend   []string // flags that say where bucket and catalog are
	server    *realstore.Server
	proxy     *faultproxy.Proxy
	store     *objstore.Store // past the proxy: looks of ours are not counted
	catalog   *sqlite.DB      // ours, beside the processes'; set once the deployment stands
	started   atomic.Int64
}

// found makes the directory's server and bucket, and the command.
func found(ctx context.Context, dir, binary string) (_ *site, err error) {
	s := &site{dir: dir, logs: filepath.Join(dir, "logs"), binary: binary}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return nil, err
	}
	if s.binary == "" {
		s.binary = filepath.Join(dir, "strandline")
		if err := build(ctx, s.binary); err != nil {
			return nil, err
		}
	}
	if s.server, err = realstore.Start(ctx, realstore.KindMinio, filepath.Join(dir, "minio")); err != nil {
		return nil, err
	}
	if err := s.server.CreateBucket(ctx, bucketName); err != nil {
		return nil, err
	}
	if s.proxy, err = faultproxy.Start(faultproxy.Config{Upstream: s.server.URL}); err != nil {
		return nil, err
	}
	s.env = append(os.Environ(), "MINIO_ROOT_USER="+s.server.AccessKey, "MINIO_ROOT_PASSWORD="+s.server.SecretKey)
	s.backend = []string{
		"--store", "standard=minio://" + s.proxy.Endpoint() + "/" + bucketName + "/" + prefix + "?tls=false",
		"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"),
	}
	driver, err := miniostore.Open(ctx, miniostore.Config{
		Endpoint: s.server.Endpoint, Bucket: bucketName, Prefix: prefix, PathStyle: true,
		AccessKey: s.server.AccessKey, SecretKey: s.server.SecretKey,
	})
	if err != nil {
		return nil, err
	}
	s.store, err = objstore.New(driver, objstore.Config{})
	return s, err
}

// build compiles the command from the checkout that the working directory lies in.
func build(ctx context.Context, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "github.com/strandline/strandline/cmd/strandline")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, said)
	}
	return nil
}

// look opens the catalog that the first writer founded.
func (s *site) look(ctx context.Context) (err error) {
	s.catalog, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(s.dir, "catalog.db"), ReadOnly: true, CacheBytes: 8 << 20})
	return err
}

// with adds where bucket and catalog are.
func (s *site) with(args ...string) []string { return append(args, s.backend...) }

func (s *site) close() error {
	var errs []error
	if s.catalog != nil {
		errs = append(errs, s.catalog.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	return errors.Join(errs...)
}
