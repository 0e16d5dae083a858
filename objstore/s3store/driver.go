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
	"github.com/aws/smithy-go/logging"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Driver is an objstore.Driver. It is safe for concurrent use.
type Driver struct {
	client    *s3.Client
	sessions  *sessions // of a directory bucket
	transport *s3wire.Transport
	space     s3wire.Space
	limits    s3wire.Limits
	sums      s3wire.PartSums
	name      string
	endpoint  string
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
func Dial(ctx context.Context, cfg Config) (*Driver, error) {
	if err := cfg.validate(); err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	loaded, err := cfg.load(ctx)
	if err != nil {
		return nil, err
	}
	source := newSource(cfg, loaded)
	loaded.Credentials = source
	// Without any, each call would fail with a text about instance metadata.
	if _, err := source.Retrieve(ctx); err != nil {
		return nil, openError(kindOf(err), err)
	}
	transport, err := s3wire.NewTransport(s3wire.Options{
		Concurrency: cfg.Limits.Concurrency, CAFile: cfg.CAFile, Renew: source.renew,
	})
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	endpoint, err := cfg.endpoint()
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	client, sessions := newClient(loaded, cfg, endpoint, transport)
	if endpoint == "" {
		// The environment or a profile may name one (AWS_ENDPOINT_URL_S3).
		cfg.Endpoint = aws.ToString(client.Options().BaseEndpoint)
		if endpoint, err = cfg.endpoint(); err != nil {
			return nil, openError(objstore.ErrInvalid, err)
		}
	}
	return &Driver{
		client: client, sessions: sessions, transport: transport, space: space, limits: cfg.Limits,
		name: cfg.name(space.Path(), loaded.Region, endpoint), endpoint: endpoint,
	}, nil
}

// kindOf is the kind of a source's failure; a call that ended in between has none.
func kindOf(err error) error {
	var failed *s3wire.SourceError
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return objstore.ErrUnavailable
}

func openError(kind, err error) error {
	return &objstore.Error{Op: "open", Key: "s3", Kind: kind, Err: err}
}

func newClient(loaded aws.Config, cfg Config, endpoint string, transport *s3wire.Transport) (*s3.Client, *sessions) {
	unsigned := s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
	sessions := newSessions(cfg.Bucket)
	client := s3.NewFromConfig(loaded, unsigned, func(o *s3.Options) {
		if isDirectoryBucket(cfg.Bucket) {
			sessions.use(o)
		}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.UsePathStyle = cfg.PathStyle
		o.RetryMaxAttempts = 1
		o.Logger = logging.Nop{} // what matters of an answer is in the error
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
	sessions.client = client
	return client, sessions
}

// Capabilities of the store, as far as its name, its answers and its URL's options tell.
func (d *Driver) Capabilities() objstore.Capabilities {
	c := s3wire.Capabilities(d.transport.Server())
	if d.directoryBucket() {
		c = expressCapabilities(c)
	}
	if strings.Contains(d.endpoint, ".r2.cloudflarestorage.com") {
		c.EqualParts = true
	}
	return d.limits.Apply(c)
}

// Name is the store's URL without credentials.
func (d *Driver) Name() string { return d.name }

// Close drops the idle connections.
func (d *Driver) Close() error {
	d.transport.Close()
	return nil
}
