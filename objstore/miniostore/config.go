package miniostore

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

const defaultRegion = "us-east-1"

// Config says which bucket to open and how to reach it.
type Config struct {
	Endpoint string // host:port
	Region   string // default us-east-1; MinIO does not care
	Bucket   string
	Prefix   string // keys stand under it; without slashes around it

	// AccessKey and SecretKey are taken as they are. Both empty: the environment
	// (AWS_*, then MINIO_*), the shared credentials file, then the instance's role.
	AccessKey, SecretKey string

	TLS         bool   // ParseURL sets it unless the URL says tls=false
	PathStyle   bool   // buckets as paths; otherwise decided by the endpoint's name
	CAFile      string // PEM certificates to trust beside the system's
	Concurrency int    // connections kept ready; 0: s3wire.DefaultConcurrency
}

// ParseURL reads minio://host:port/bucket/prefix?tls=&region=&ca=. TLS is on unless
// tls=false. Credentials have no place in a URL and are refused there.
func ParseURL(s string) (Config, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The text of err repeats the URL, which may hold a password.
		return Config{}, fmt.Errorf("store URL: not readable: want minio://HOST:PORT/BUCKET/PREFIX?tls=")
	}
	if u.User != nil {
		return Config{}, fmt.Errorf("store URL: it holds credentials: put them into MINIO_ROOT_USER and MINIO_ROOT_PASSWORD, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if u.Scheme != "minio" || u.Host == "" {
		return Config{}, fmt.Errorf("store URL %s: want minio://HOST:PORT/BUCKET/PREFIX?tls=", s)
	}
	cfg := Config{Endpoint: u.Host, TLS: true, PathStyle: true}
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	cfg.Bucket, cfg.Prefix = bucket, prefix
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, fmt.Errorf("store URL %s: %w", s, err)
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "tls":
			if cfg.TLS, err = strconv.ParseBool(value); err != nil {
				return Config{}, fmt.Errorf("store URL %s: tls=%s: want true or false", s, value)
			}
		case "region":
			cfg.Region = value
		case "ca":
			cfg.CAFile = value
		default:
			return Config{}, fmt.Errorf("store URL %s: unknown option %q: tls, region and ca are known", s, name)
		}
	}
	return cfg, cfg.validate()
}

func (c Config) validate() error {
	switch {
	case c.Endpoint == "" || strings.Contains(c.Endpoint, "/"):
		return fmt.Errorf("endpoint %q: want HOST:PORT", c.Endpoint)
	case c.Bucket == "":
		return fmt.Errorf("the store's URL names no bucket: want minio://HOST:PORT/BUCKET/PREFIX")
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return fmt.Errorf("access key and secret key come together or not at all")
	}
	return nil
}

func (c Config) credentials() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.EnvMinio{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{},
	})
}

// name is the store's URL for messages.
func (c Config) name(path string) string {
	s := "minio://" + c.Endpoint + "/" + path
	if !c.TLS {
		s += "?tls=false"
	}
	return s
}
