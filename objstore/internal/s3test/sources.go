//go:build unix

package s3test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// issued is what a fake source hands out.
type issued struct {
	key, secret, token string
	ends               time.Time
}

// sources is a fake token service, instance metadata service and container endpoint on
// loopback.
type sources struct {
	server *httptest.Server
	next   func() issued    // what is handed out now
	refuse http.HandlerFunc // answers in place of the sources; nil: they answer

	mu      sync.Mutex
	handed  []issued
	strange []string // requests that did not say what they must
}

const (
	identityToken  = "identity-token-of-the-test"
	containerToken = "container-token-of-the-test"
	metadataToken  = "metadata-token-of-the-test"
	roleARN        = "arn:aws:iam::123456789012:role/writer"
)

func newSources(t *testing.T, next func() issued) *sources {
	s := &sources{next: next}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *sources) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		s.refuse(w, r)
		return
	}
	switch path := r.URL.Path; {
	case path == "/latest/api/token" && r.Method == http.MethodPut:
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		_, _ = io.WriteString(w, metadataToken)
	case strings.HasPrefix(path, "/latest/meta-data/iam/security-credentials"):
		s.expect(r, "X-Aws-Ec2-Metadata-Token", metadataToken)
		if strings.HasSuffix(path, "/writer") {
			s.json(w, `"Code":"Success",`)
			return
		}
		_, _ = io.WriteString(w, "writer")
	case path == "/container":
		s.expect(r, "Authorization", containerToken)
		s.json(w, "")
	case r.Method == http.MethodPost:
		s.assume(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *sources) expect(r *http.Request, header, want string) {
	if r.Header.Get(header) != want {
		s.strange = append(s.strange, r.URL.Path+" without "+header)
	}
}

func (s *sources) json(w http.ResponseWriter, more string) {
	c := s.hand()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{%s"AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`,
		more, c.key, c.secret, c.token, c.ends.UTC().Format(time.RFC3339))
}

func (s *sources) assume(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("WebIdentityToken") != identityToken || r.FormValue("RoleArn") != roleARN {
		s.strange = append(s.strange, "a token service asked "+r.FormValue("Action"))
	}
	c := s.hand()
	xmlAnswer(w, http.StatusOK, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>`+
		"<Credentials><AccessKeyId>"+c.key+"</AccessKeyId><SecretAccessKey>"+c.secret+"</SecretAccessKey><SessionToken>"+c.token+"</SessionToken><Expiration>"+
		c.ends.UTC().Format(time.RFC3339)+"</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>")
}

func (s *sources) hand() issued {
	c := s.next()
	s.handed = append(s.handed, c)
	return c
}

func (s *sources) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handed)
}

// Lonely takes every source of credentials away from a test.
func Lonely(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "MINIO_") {
			t.Setenv(name, "") // to have it back afterwards
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// setUp makes one way to credentials the one that is set up, and checks that it was used.
type setUp struct {
	name string
	set  func(t *testing.T, s *sources, c issued)
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func setUps() []setUp {
	return []setUp{
		{"environment", func(t *testing.T, _ *sources, c issued) {
			t.Setenv("AWS_ACCESS_KEY_ID", c.key)
			t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
			t.Setenv("AWS_SESSION_TOKEN", c.token)
		}},
		{"credentials file", func(t *testing.T, _ *sources, c issued) {
			t.Setenv("AWS_PROFILE", "other")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", written(t, "[default]\naws_access_key_id = AKIDOFTHEDEFAULT\naws_secret_access_key = of-the-default\n\n[other]\n"+profileText(c)))
		}},
		{"config file", func(t *testing.T, _ *sources, c issued) {
			t.Setenv("AWS_PROFILE", "other")
			t.Setenv("AWS_CONFIG_FILE", written(t, "[profile other]\nregion = us-east-1\n"+profileText(c)))
		}},
		{"default profile", func(t *testing.T, _ *sources, c issued) {
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", written(t, "[default]\n"+profileText(c)))
		}},
		{"web identity", func(t *testing.T, s *sources, _ issued) { s.identify(t) }},
		{"container", func(t *testing.T, s *sources, _ issued) {
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", s.server.URL+"/container")
			t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", containerToken)
		}},
		{"instance", func(t *testing.T, s *sources, _ issued) {
			t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
			t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.server.URL)
		}},
	}
}

func profileText(c issued) string {
	return fmt.Sprintf("aws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\n", c.key, c.secret, c.token)
}

// identify sets a web identity up.
func (s *sources) identify(t *testing.T) {
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", written(t, identityToken))
	t.Setenv("AWS_ROLE_ARN", roleARN)
	t.Setenv("AWS_ROLE_SESSION_NAME", "test")
	t.Setenv("AWS_ENDPOINT_URL_STS", s.server.URL)
}

// assumed are temporary credentials that a real MinIO made for its root user.
func assumed(t *testing.T, url, key, secret string) issued {
	t.Helper()
	c, err := credentials.NewSTSAssumeRole(url, credentials.STSAssumeRoleOptions{AccessKey: key, SecretKey: secret, DurationSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.GetWithContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	return issued{key: v.AccessKeyID, secret: v.SecretAccessKey, token: v.SessionToken, ends: time.Now().Add(time.Hour)}
}
