package miniostore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// ways is what an operator is told when no credentials are found.
const ways = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN for temporary ones), " +
	"MINIO_ROOT_USER and MINIO_ROOT_PASSWORD, " +
	"AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, " +
	"a profile in ~/.aws (AWS_PROFILE), a container's or an instance's role"

// source is where a driver's credentials come from. It is safe for concurrent use.
type source struct {
	credentials *credentials.Credentials
	client      *http.Client
	renewing    sync.Mutex // held while credentials are renewed, so that they are once
}

// newSource finds the way that is set up here and fetches credentials once.
func newSource(ctx context.Context, cfg Config) (*source, error) {
	s := &source{client: sourceClient(cfg.CAFile)}
	if cfg.AccessKey != "" {
		s.credentials = credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, cfg.SessionToken)
		return s, nil
	}
	s.credentials = credentials.New(&chain{store: cfg, client: s.client})
	_, err := s.credentials.GetWithContext(&credentials.CredContext{Context: ctx, Client: s.client})
	var failed *s3wire.SourceError
	switch {
	case errors.As(err, &failed):
		return nil, openError(failed.Kind, failed)
	case err != nil:
		return nil, openError(objstore.ErrUnavailable, err)
	}
	return s, nil
}

// renew is an s3wire.Renew.
func (s *source) renew(ctx context.Context, used s3wire.Signer) error {
	s.renewing.Lock()
	defer s.renewing.Unlock()
	cc := &credentials.CredContext{Context: ctx, Client: s.client}
	// Another call may have renewed them while this one was under way.
	for range 2 {
		v, err := s.credentials.GetWithContext(cc)
		if err != nil {
			return err
		}
		if v.AccessKeyID != used.AccessKey || v.SessionToken != used.Token {
			return nil
		}
		s.credentials.Expire()
	}
	return errors.New("the source gives the same credentials again")
}

// chain takes credentials from the first way that is set up. Unlike minio-go's own, it
// does not pass over a way that is set up and fails: the next one would be another
// identity, and the last nobody.
type chain struct {
	store   Config
	client  *http.Client
	current credentials.Provider
}

// way is one place to look at.
type way struct {
	name     string
	provider credentials.Provider
	metadata bool // an instance's metadata service, which answers at once or is not there
	optional bool // it may turn out not to be there
}

// ways lists the places that are set up, in the order of the AWS tools, with MinIO's own
// variables after AWS's.
func (c *chain) ways() []way {
	var out []way
	add := func(w way) { out = append(out, w) }
	if set("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") || set("AWS_ACCESS_KEY", "AWS_SECRET_KEY") {
		add(way{name: "AWS_ACCESS_KEY_ID", provider: &credentials.EnvAWS{}})
	}
	if set("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD") || set("MINIO_ACCESS_KEY", "MINIO_SECRET_KEY") {
		add(way{name: "MINIO_ROOT_USER", provider: &credentials.EnvMinio{}})
	}
	if set("AWS_WEB_IDENTITY_TOKEN_FILE") {
		iam := &credentials.IAM{Client: c.client, Endpoint: c.tokenService(), Region: c.store.Region}
		add(way{name: "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE", provider: iam})
	}
	profile := os.Getenv("AWS_PROFILE")
	add(way{
		name: fmt.Sprintf("the profile %q", cmp.Or(profile, "default")), provider: &credentials.FileAWSCredentials{},
		optional: profile == "",
	})
	switch {
	case set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") || set("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
		add(way{name: "the container's role", provider: &credentials.IAM{Client: c.client}})
	case !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true"):
		endpoint := strings.TrimSuffix(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
		add(way{
			name: "the instance's role", provider: &credentials.IAM{Client: c.client, Endpoint: endpoint},
			metadata: true, optional: endpoint == "",
		})
	}
	return out
}

// tokenService is where a web identity's token is exchanged: AWS's for a bucket of AWS
// ("": minio-go knows it), else the store itself, as MinIO does it.
func (c *chain) tokenService() string {
	if s := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), os.Getenv("AWS_ENDPOINT_URL")); s != "" {
		return s
	}
	u := &url.URL{Scheme: "https", Host: c.store.Endpoint}
	if s3utils.IsAmazonEndpoint(*u) {
		return ""
	}
	return c.store.endpoint()
}

// RetrieveWithCredContext is called by credentials.Credentials, one call at a time.
func (c *chain) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx := context.Background()
	if cc != nil && cc.Context != nil {
		ctx = cc.Context
	}
	detail := "none is set"
	for _, w := range c.ways() {
		v, status, err := c.ask(ctx, w)
		complete := v.AccessKeyID != "" && v.SecretAccessKey != ""
		switch {
		case err == nil && complete:
			c.current = w.provider
			return v, nil
		case ctx.Err() != nil:
			return credentials.Value{}, ctx.Err()
		case w.optional && w.metadata && status < http.StatusInternalServerError:
			detail = "none is set, and no instance's role is offered here"
		case w.optional && !w.metadata && (err == nil || absent(err)):
		default:
			return credentials.Value{}, failure(w, status, err)
		}
	}
	return credentials.Value{}, s3wire.NoCredentials(ways, detail)
}

// Retrieve is the interface's older form.
func (c *chain) Retrieve() (credentials.Value, error) { return c.RetrieveWithCredContext(nil) }

// IsExpired asks the way in use, which knows when its credentials end.
func (c *chain) IsExpired() bool { return c.current == nil || c.current.IsExpired() }

// ask tries one way. The context carries nothing of the call that needs the credentials:
// their requests must not be taken for its own. status is the last answer's, 0 if none came.
func (c *chain) ask(parent context.Context, w way) (v credentials.Value, status int, err error) {
	timeout := s3wire.SourceTimeout
	if w.metadata {
		timeout = s3wire.MetadataTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer context.AfterFunc(parent, cancel)()
	ctx = context.WithValue(ctx, statusKey{}, &status)
	v, err = w.provider.RetrieveWithCredContext(&credentials.CredContext{Client: c.client, Endpoint: c.store.endpoint(), Context: ctx})
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return v, status, err
}

// absent tells a shared file or its default profile that is not there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), `section "default" does not exist`)
}

// failure says what went wrong with a way, without what it answered.
func failure(w way, status int, err error) error {
	var refused credentials.ErrorResponse
	switch {
	case err == nil:
		return &s3wire.SourceError{
			Source: w.name, Kind: objstore.ErrDenied, Detail: "it holds no keys, no single sign-on and no credential_process",
			Next: "complete it; profiles that assume a role are read by s3:// URLs",
		}
	case errors.As(err, &refused):
		return s3wire.Refused(w.name, status, refused.STSError.Code)
	case status >= http.StatusMultipleChoices:
		return s3wire.Refused(w.name, status, "")
	case status == 0 && (strings.HasPrefix(err.Error(), "profile ") || strings.HasPrefix(err.Error(), "cached SSO token ")):
		return &s3wire.SourceError{Source: w.name, Kind: objstore.ErrDenied, Detail: err.Error()}
	case strings.HasPrefix(err.Error(), "section ") && strings.HasSuffix(err.Error(), " does not exist"):
		return &s3wire.SourceError{Source: w.name, Kind: objstore.ErrDenied, Detail: "there is no such profile", Next: "correct AWS_PROFILE, or add it to ~/.aws/credentials"}
	case strings.HasPrefix(err.Error(), "uri host is not a loopback address"):
		return &s3wire.SourceError{
			Source: w.name, Kind: objstore.ErrDenied, Detail: "AWS_CONTAINER_CREDENTIALS_FULL_URI is not on this host",
			Next: "set AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE as well, or use an address of this host",
		}
	}
	return s3wire.Unreached(w.name, err)
}

type statusKey struct{}

// metadataNet is where EC2 has its services on IPv6.
var metadataNet = netip.MustParsePrefix("fd00:ec2::/32")

// sourceClient fetches credentials. Redirects are not followed: they would carry a token
// to another host. Nor is a proxy asked for this host's own services.
func sourceClient(caFile string) *http.Client {
	return &http.Client{
		Transport:     noting{dialing{caFile}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialing sends each request over a connection of its own. The certificates that caFile
// adds are read then: most credentials are found without a request.
type dialing struct{ caFile string }

func (d dialing) RoundTrip(req *http.Request) (*http.Response, error) {
	roots, err := s3wire.Roots(d.caFile)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy: viaProxy, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return t.RoundTrip(req)
}

// noting writes the status of an answer down where ask looks.
type noting struct{ next http.RoundTripper }

func (n noting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(req)
	if status, ok := req.Context().Value(statusKey{}).(*int); ok && err == nil {
		*status = resp.StatusCode
	}
	return resp, err
}

// set tells whether all of the variables have values.
func set(names ...string) bool {
	for _, name := range names {
		if os.Getenv(name) == "" {
			return false
		}
	}
	return true
}

// viaProxy keeps questions to this host's own services away from a proxy.
func viaProxy(req *http.Request) (*url.URL, error) {
	ip, err := netip.ParseAddr(req.URL.Hostname())
	if err == nil && (ip.IsLinkLocalUnicast() || ip.IsLoopback() || metadataNet.Contains(ip)) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}
