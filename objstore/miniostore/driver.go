package miniostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Driver is an objstore.Driver. It is safe for concurrent use.
type Driver struct {
	core      *minio.Core
	transport *s3wire.Transport
	space     s3wire.Space
	limits    s3wire.Limits
	sums      s3wire.PartSums
	name      string
}

var _ objstore.Driver = (*Driver)(nil)

// Open reaches the store and lists one key: wrong credentials, a missing bucket and a
// wrong clock show here, where a read of a key might take them for "not found".
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	d, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = s3wire.Reach(ctx, func() error {
		_, err := d.List(ctx, "", "", "", 1)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", d.name, err), d.Close())
	}
	return d, nil
}

// Dial makes the driver without a request to the store, for one that may be away: what is
// wrong with it shows with the first call, and is ErrUnavailable while it does not answer.
// Credentials are fetched: without any, minio-go would go on as nobody.
func Dial(ctx context.Context, cfg Config) (*Driver, error) {
	invalid := func(err error) error { return openError(objstore.ErrInvalid, err) }
	if err := cfg.validate(); err != nil {
		return nil, invalid(err)
	}
	if err := s3utils.CheckValidBucketName(cfg.Bucket); err != nil { // else minio-go says so of each call
		return nil, invalid(fmt.Errorf("bucket %q: %w: %s", cfg.Bucket, err, s3wire.HintBucket))
	}
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, invalid(err)
	}
	source, err := newSource(ctx, cfg)
	if err != nil {
		return nil, err
	}
	transport, err := s3wire.NewTransport(s3wire.Options{
		Concurrency: cfg.Limits.Concurrency, CAFile: cfg.CAFile, Plain: !cfg.TLS, Renew: source.renew,
	})
	if err != nil {
		return nil, invalid(err)
	}
	core, err := newCore(cfg, source, transport)
	if err != nil {
		return nil, invalid(err)
	}
	return &Driver{core: core, transport: transport, space: space, limits: cfg.Limits, name: cfg.name(space.Path())}, nil
}

func newCore(cfg Config, from *source, transport http.RoundTripper) (*minio.Core, error) {
	region, lookup := cfg.Region, minio.BucketLookupAuto
	if region == "" {
		region = defaultRegion
	}
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	return minio.NewCore(cfg.Endpoint, &minio.Options{
		Creds:        from.credentials,
		Secure:       cfg.TLS,
		Transport:    transport,
		Region:       region,
		BucketLookup: lookup,
		MaxRetries:   1,
	})
}

func openError(kind, err error) error {
	return &objstore.Error{Op: "open", Key: "minio", Kind: kind, Err: err}
}

// begin starts one call: its record, and the context to make it with, which ends when
// the call has failed. The library then tells at once instead of sleeping first.
func begin(ctx context.Context, op objstore.Op) (context.Context, *s3wire.Exchange) {
	ctx, stop := context.WithCancel(ctx) // ends with its parent at the latest
	ctx, ex := s3wire.NewExchange(ctx, op)
	ex.EndOnFailure(stop)
	return ctx, ex
}

// Capabilities of the store, as far as its answers and its URL told.
func (d *Driver) Capabilities() objstore.Capabilities {
	return d.limits.Apply(s3wire.Capabilities(d.transport.Server()))
}

// Name is the store's URL without credentials.
func (d *Driver) Name() string { return d.name }

// Close drops the idle connections.
func (d *Driver) Close() error {
	d.transport.Close()
	return nil
}
