package miniostore

import (
	"context"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Bare is minio-go without this package around it, on the same bucket and with the same
// credentials. Benchmarks measure the driver beside it; nothing else uses it.
type Bare struct {
	Core     *minio.Core
	Bucket   string
	Full     func(key string) string // the bucket's key for a key under the URL's prefix
	Requests func() int64            // sent so far
	Close    func()
}

// OpenBare makes the client as an expert would set it for bulk transfers (a transport of
// its own with as many idle connections as the driver's, the region set), or, with
// defaults, on the library's own transport.
func OpenBare(ctx context.Context, cfg Config, defaults bool) (*Bare, error) {
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	source, err := newSource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var base *http.Transport
	if defaults {
		if base, err = minio.DefaultTransport(cfg.TLS); err != nil {
			return nil, openError(objstore.ErrInvalid, err)
		}
	}
	transport, err := s3wire.NewCounting(base, cfg.CAFile)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	o := &minio.Options{Creds: source.credentials, Secure: cfg.TLS, Transport: transport, Region: cfg.Region}
	if !defaults && o.Region == "" {
		o.Region = defaultRegion
	}
	if cfg.PathStyle {
		o.BucketLookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(cfg.Endpoint, o)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	return &Bare{Core: core, Bucket: space.Bucket, Full: space.Full, Requests: transport.Requests, Close: transport.Close}, nil
}
