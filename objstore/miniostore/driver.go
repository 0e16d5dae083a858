package miniostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Driver is an objstore.Driver. It is safe for concurrent use.
type Driver struct {
	core      *minio.Core
	transport *s3wire.Transport
	space     s3wire.Space
	name      string
}

var _ objstore.Driver = (*Driver)(nil)

// Open reaches the store and lists one key: wrong credentials, a missing bucket and a
// wrong clock show here, where a read of a key might take them for "not found".
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	d, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	if _, err := d.List(ctx, "", "", "", 1); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", d.name, err), d.Close())
	}
	return d, nil
}

// dial makes the driver without a request.
func dial(cfg Config) (*Driver, error) {
	invalid := func(err error) error {
		return &objstore.Error{Op: "open", Key: "minio", Kind: objstore.ErrInvalid, Err: err}
	}
	if err := cfg.validate(); err != nil {
		return nil, invalid(err)
	}
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, invalid(err)
	}
	transport, err := s3wire.NewTransport(s3wire.Options{Concurrency: cfg.Concurrency, CAFile: cfg.CAFile})
	if err != nil {
		return nil, invalid(err)
	}
	region, lookup := cfg.Region, minio.BucketLookupAuto
	if region == "" {
		region = defaultRegion
	}
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(cfg.Endpoint, &minio.Options{
		Creds:        cfg.credentials(),
		Secure:       cfg.TLS,
		Transport:    transport,
		Region:       region,
		BucketLookup: lookup,
		MaxRetries:   1,
	})
	if err != nil {
		return nil, invalid(err)
	}
	return &Driver{core: core, transport: transport, space: space, name: cfg.name(space.Path())}, nil
}

// Capabilities of the store, as far as its answers told.
func (d *Driver) Capabilities() objstore.Capabilities {
	return s3wire.Capabilities(d.transport.Server())
}

// Name is the store's URL without credentials.
func (d *Driver) Name() string { return d.name }

// Close drops the idle connections.
func (d *Driver) Close() error {
	d.transport.Close()
	return nil
}
