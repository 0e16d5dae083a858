package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Driver is an objstore.Driver. It is safe for concurrent use.
type Driver struct {
	client    *s3.Client
	transport *s3wire.Transport
	space     s3wire.Space
	name      string
	endpoint  string
}

var _ objstore.Driver = (*Driver)(nil)

// Open reaches the store and lists one key: wrong credentials, a missing bucket and a
// wrong clock show here, where a read of a key might take them for "not found".
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	d, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := d.List(ctx, "", "", "", 1); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", d.name, err), d.Close())
	}
	return d, nil
}

// dial makes the driver without a request to the store.
func dial(ctx context.Context, cfg Config) (*Driver, error) {
	if err := cfg.validate(); err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	endpoint, err := cfg.endpoint()
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	transport, err := s3wire.NewTransport(s3wire.Options{Concurrency: cfg.Concurrency, CAFile: cfg.CAFile})
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	loaded, err := cfg.load(ctx)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	if _, err := loaded.Credentials.Retrieve(ctx); err != nil {
		return nil, openError(objstore.ErrDenied, fmt.Errorf(
			"no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role: %w", err))
	}
	return &Driver{
		client:    newClient(loaded, cfg, endpoint, transport),
		transport: transport,
		space:     space,
		name:      cfg.name(space.Path(), loaded.Region, endpoint),
		endpoint:  endpoint,
	}, nil
}

func openError(kind, err error) error {
	return &objstore.Error{Op: "open", Key: "s3", Kind: kind, Err: err}
}

func newClient(loaded aws.Config, cfg Config, endpoint string, transport *s3wire.Transport) *s3.Client {
	unsigned := s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
	return s3.NewFromConfig(loaded, unsigned, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.UsePathStyle = cfg.PathStyle
		o.RetryMaxAttempts = 1
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		// The transport asks for 100 Continue where it matters, and waits for it.
		o.ContinueHeaderThresholdBytes = -1
		// No deadline on the client: the context of each call has one. Redirects are not
		// followed: they mean a wrong region, and a signature is for one host.
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	})
}

// Capabilities of the store, as far as its name and its answers tell.
func (d *Driver) Capabilities() objstore.Capabilities {
	c := s3wire.Capabilities(d.transport.Server())
	if d.directoryBucket() {
		c.OrderedList, c.StartAfter = false, false
	}
	if strings.Contains(d.endpoint, ".r2.cloudflarestorage.com") {
		c.EqualParts = true
	}
	return c
}

// directoryBucket tells an S3 Express One Zone bucket, which lists without order and
// only whole directories.
func (d *Driver) directoryBucket() bool { return strings.HasSuffix(d.space.Bucket, "--x-s3") }

// Name is the store's URL without credentials.
func (d *Driver) Name() string { return d.name }

// Close drops the idle connections.
func (d *Driver) Close() error {
	d.transport.Close()
	return nil
}
