package s3store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// ways is what an operator is told when no credentials are found.
const ways = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN for temporary ones), " +
	"AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, " +
	"a profile in ~/.aws (AWS_PROFILE), a container's or an instance's role"

// load resolves region and credentials; it asks nobody yet.
func (c Config) load(ctx context.Context) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithDefaultRegion(defaultRegion),
		config.WithLogger(logging.Nop{}), // it would write to standard error past our own logs
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.AccessKey != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, c.SessionToken)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	var (
		absent     config.SharedConfigProfileNotExistError
		unreadable config.SharedConfigLoadError
	)
	switch {
	case err == nil:
		return cfg, nil
	case errors.As(err, &absent):
		return aws.Config{}, openError(objstore.ErrDenied, &s3wire.SourceError{
			Source: fmt.Sprintf("the profile %q", absent.Profile), Kind: objstore.ErrDenied,
			Detail: "there is no such profile", Next: "correct AWS_PROFILE, or add it to ~/.aws/credentials",
		})
	case errors.As(err, &unreadable):
		// Its own text may quote a line of the file.
		return aws.Config{}, openError(objstore.ErrInvalid, fmt.Errorf("the shared AWS configuration %s: not readable: correct it", unreadable.Filename))
	}
	return aws.Config{}, openError(objstore.ErrInvalid, fmt.Errorf("the AWS configuration of this environment: %s",
		s3wire.Strike(err.Error(), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN"), os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"))))
}

// source is the SDK's chain with bounds on its time and on what it says. It is safe for
// concurrent use.
type source struct {
	cfg      Config
	chain    atomic.Pointer[chain]
	renewing sync.Mutex // held while credentials are renewed, so that they are once
}

// chain is what the SDK found once: a cache around one source.
type chain struct {
	aws.CredentialsProvider
	last atomic.Pointer[aws.Credentials] // of the cache, whose end is ahead of the real one
}

func newSource(cfg Config, loaded aws.Config) *source {
	s := &source{cfg: cfg}
	s.chain.Store(&chain{CredentialsProvider: loaded.Credentials})
	return s
}

// Retrieve is called for each request.
func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return s.chain.Load().retrieve(ctx)
}

func (c *chain) retrieve(parent context.Context) (aws.Credentials, error) {
	if v := c.last.Load(); v != nil && !v.Expired() {
		return *v, nil // nearly always: no timer is set for it
	}
	ctx, cancel := context.WithTimeout(parent, c.timeout())
	defer cancel()
	v, err := c.CredentialsProvider.Retrieve(ctx)
	switch {
	case err == nil:
		c.last.Store(&v)
		return v, nil
	case parent.Err() != nil:
		return v, parent.Err()
	}
	return v, c.failure(err)
}

// renew is an s3wire.Renew. It reads environment and files anew: what stands in them may
// have been renewed by others.
func (s *source) renew(ctx context.Context, used s3wire.Signer) error {
	s.renewing.Lock()
	defer s.renewing.Unlock()
	for again := range 2 {
		if again > 0 {
			loaded, err := s.cfg.load(ctx)
			if err != nil {
				return err
			}
			s.chain.Store(&chain{CredentialsProvider: loaded.Credentials})
		}
		v, err := s.Retrieve(ctx)
		if err != nil {
			return err
		}
		if v.AccessKeyID != used.AccessKey || v.SessionToken != used.Token {
			return nil // by this call, or by another while this one was under way
		}
	}
	return errors.New("the source gives the same credentials again")
}

// origin is the first step of the chain: where its credentials stem from.
func (c *chain) origin() aws.CredentialSource {
	if p, ok := c.CredentialsProvider.(aws.CredentialProviderSource); ok {
		if steps := p.ProviderSources(); len(steps) > 0 {
			return steps[len(steps)-1]
		}
	}
	return aws.CredentialSourceUndefined
}

func (c *chain) timeout() time.Duration {
	if c.origin() == aws.CredentialSourceIMDS {
		return s3wire.MetadataTimeout
	}
	return s3wire.SourceTimeout
}

func (c *chain) name() string {
	switch c.origin() {
	case aws.CredentialSourceIMDS:
		return "the instance's role"
	case aws.CredentialSourceHTTP:
		return "the container's role"
	case aws.CredentialSourceEnvVarsSTSWebIDToken:
		return "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE"
	default:
		return fmt.Sprintf("the profile %q", profile())
	}
}

func profile() string {
	if p := os.Getenv("AWS_PROFILE"); p != "" {
		return p
	}
	return "default"
}

// failure says what went wrong, without what the source answered.
func (c *chain) failure(err error) error {
	var (
		code    string
		api     smithy.APIError
		answer  interface{ HTTPStatusCode() int }
		sso     *ssocreds.InvalidTokenError
		process *processcreds.ProviderError
		status  int
	)
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	// The SDK comes to the instance last, also where there is none.
	if c.origin() == aws.CredentialSourceIMDS && os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") == "" && status < 500 {
		return s3wire.NoCredentials(ways, "none is set, and no instance's role is offered here")
	}
	switch {
	case errors.As(err, &sso):
		return &s3wire.SourceError{Source: c.name(), Kind: objstore.ErrDenied, Detail: "the single sign-on has expired", Next: "run aws sso login"}
	case errors.As(err, &process):
		return &s3wire.SourceError{Source: c.name(), Kind: objstore.ErrDenied, Detail: "its credential_process failed", Next: "run it by hand"}
	case status >= 300 || (status == 0 && code != ""):
		return s3wire.Refused(c.name(), status, code)
	case c.origin() == aws.CredentialSourceEnvVarsSTSWebIDToken:
		if _, gone := os.Stat(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")); gone != nil {
			err = gone // the SDK's error does not hold it
		}
	}
	return s3wire.Unreached(c.name(), err)
}
