//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
)

// What no run may print.
const (
	wrongSecret   = "a-wrong-secret-of-the-test"
	urlPassword   = "password-in-the-url"
	identityToken = "identity-token-of-the-test"
	handedKey     = "AKIDHANDEDOUT"
	handedSecret  = "secret-that-was-handed-out"
	handedToken   = "session-token-that-was-handed-out"
)

// chatty is a token service, a metadata service and a store in one, which puts every
// secret it knows into its answers.
func chatty(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	all := strings.Join([]string{wrongSecret, identityToken, handedKey, handedSecret, handedToken, r.Header.Get("Authorization")}, " ")
	switch {
	case r.URL.Path == "/latest/api/token":
		_, _ = io.WriteString(w, "metadata-token")
	case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
		_, _ = io.WriteString(w, "role")
	case strings.HasSuffix(r.URL.Path, "/role"):
		_, _ = fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":"2099-01-01T00:00:00Z"}`, handedKey, handedSecret, handedToken)
	case r.Header.Get("Authorization") == "": // a token service
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Code>AccessDenied</Code><Message>`+all+`</Message></Error></ErrorResponse>`)
	default: // a store, which knows nothing but what it was sent
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `<Error><Code>AccessDenied</Code><Message>%s may not, with %s</Message></Error>`, handedKey, r.Header.Get("X-Amz-Security-Token"))
	}
}

// TestSecrets goes through runs that succeed and that fail around a store's credentials,
// and reads all they print, as text and as JSON.
func TestSecrets(t *testing.T) {
	server := realstore.Own(t, realstore.KindMinio, false)
	bucket := server.NewBucket(t)
	odd := httptest.NewServer(http.HandlerFunc(chatty))
	t.Cleanup(odd.Close)
	host := strings.TrimPrefix(odd.URL, "http://")
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(identityToken), 0o600); err != nil {
		t.Fatal(err)
	}
	minio := func(host, bucket string) string { return "minio://" + host + "/" + bucket + "?tls=false" }
	s3 := func(host, bucket string) string {
		return "s3://" + bucket + "?path-style=true&endpoint=http://" + host
	}
	keys := func(secret string) map[string]string {
		return map[string]string{"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": secret}
	}
	identity := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": tokenFile, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_ENDPOINT_URL_STS": odd.URL, "AWS_MAX_ATTEMPTS": "1"}
	instance := map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": odd.URL}
	for name, c := range map[string]struct {
		env    map[string]string
		stores []string
		fine   bool
	}{
		"right":           {keys(server.SecretKey), []string{minio(server.Endpoint, bucket), s3(server.Endpoint, bucket)}, true},
		"wrong secret":    {keys(wrongSecret), []string{minio(server.Endpoint, bucket), s3(server.Endpoint, bucket)}, false},
		"no such bucket":  {keys(server.SecretKey), []string{minio(server.Endpoint, "none-such"), s3(server.Endpoint, "none-such")}, false},
		"nobody there":    {keys(server.SecretKey), []string{minio("127.0.0.1:1", bucket), s3("127.0.0.1:1", bucket)}, false},
		"STS refuses":     {identity, []string{minio(host, bucket), s3(host, bucket)}, false},
		"instance's role": {instance, []string{minio(host, bucket), s3(host, bucket)}, false},
		"in the URL": {keys(server.SecretKey), []string{
			"minio://me:" + urlPassword + "@" + server.Endpoint + "/" + bucket, "s3://me:" + urlPassword + "@" + bucket,
			"minio:me:" + urlPassword + "@h/b", "s3://b?endpoint=https://me:" + urlPassword + "@h", "s3://b?secret=" + urlPassword,
			"minio://h/b?secret=" + urlPassword, "other://h/b?secret=" + urlPassword, "other://me:" + urlPassword + "@h/b", "s3://b:" + urlPassword + "@:x/",
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			for _, store := range c.stores {
				catalog := "sqlite://" + filepath.Join(t.TempDir(), "catalog.db")
				for _, args := range [][]string{
					{"bench", "store", "--quick", "--rounds", "1", "--only", "put 4 KiB x1$", "--store", store},
					{"bench", "store", "--quick", "--rounds", "1", "--only", "put 4 KiB x1$", "--store", store, "--json"},
					{"auditor", "--once", "--log-level", "debug", "--store", "standard=" + store, "--catalog", catalog},
				} {
					r := cli(t, "", args...)
					if args[0] == "bench" && (r.code == exitOK) != c.fine {
						t.Errorf("%v: exit %d: %s", args, r.code, r.err)
					}
					for _, secret := range []string{
						server.SecretKey, server.AccessKey, wrongSecret, urlPassword, identityToken, handedKey, handedSecret, handedToken,
					} {
						if strings.Contains(r.out+r.err, secret) {
							t.Errorf("%v shows %q:\n%s%s", args, secret, r.out, r.err)
						}
					}
				}
			}
		})
	}
}
