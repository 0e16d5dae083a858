package s3store

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Bare is the SDK's client without this package around it, on the same bucket and with the
// same credentials. Benchmarks measure the driver beside it; nothing else uses it.
type Bare struct {
	Client   *s3.Client
	Bucket   string
	Full     func(key string) string // the bucket's key for a key under the URL's prefix
	Requests func() int64            // sent so far
	Close    func()
}

// OpenBare makes the client as an expert would set it for bulk transfers (a transport of
// its own with as many idle connections as the driver's, unsigned payloads, checksums only
// where required), or, with defaults, as LoadDefaultConfig leaves it.
func OpenBare(ctx context.Context, cfg Config, defaults bool) (*Bare, error) {
	space, err := s3wire.NewSpace(cfg.Bucket, cfg.Prefix)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	endpoint, err := cfg.endpoint()
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	loaded, err := cfg.load(ctx)
	if err != nil {
		return nil, err
	}
	var base *http.Transport
	if defaults {
		base = awshttp.NewBuildableClient().GetTransport()
	}
	transport, err := s3wire.NewCounting(base, cfg.CAFile)
	if err != nil {
		return nil, openError(objstore.ErrInvalid, err)
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.UsePathStyle = cfg.PathStyle
		o.HTTPClient = &http.Client{Transport: transport}
		if !defaults {
			o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	return &Bare{Client: client, Bucket: space.Bucket, Full: space.Full, Requests: transport.Requests, Close: transport.Close}, nil
}
