package miniostore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/strandline/strandline/objstore/internal/s3wire"
)

const defaultRegion = "us-east-1"

// Config says which bucket to open and how to reach it.
type Config struct {
	Endpoint string // host:port
	Region   string // default us-east-1; MinIO does not care
	Bucket   string
	Prefix   string // keys stand under it; without slashes around it

	// AccessKey, SecretKey and, for temporary ones, SessionToken are taken as they are.
	// All empty: the first of the ways in credentials.go that is set up here.
	AccessKey, SecretKey, SessionToken string

	TLS       bool          // ParseURL sets it unless the URL says tls=false
	PathStyle bool          // buckets as paths; otherwise decided by the endpoint's name
	CAFile    string        // PEM certificates to trust beside the system's; "": those of AWS_CA_BUNDLE, if set
	Limits    s3wire.Limits // what the store cannot do or take
}

// form is never changed.
var form = s3wire.URLForm{
	Scheme: "minio", Want: "want minio://HOST:PORT/BUCKET/PREFIX?tls=",
	Keys: "MINIO_ROOT_USER and MINIO_ROOT_PASSWORD, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}

// ParseURL reads minio://host:port/bucket/prefix?tls=&region=&ca=&parts=equal&range-copy=false&concurrency=N.
// TLS is on unless tls=false. Credentials have no place in a URL and are refused there.
func ParseURL(s string) (Config, error) {
	cfg := Config{TLS: true, PathStyle: true}
	u, err := s3wire.ParseURL(s, form, cfg.option)
	if err != nil {
		return Config{}, err
	}
	cfg.Endpoint = u.Host
	cfg.Bucket, cfg.Prefix, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return cfg, cfg.validate()
}

func (c *Config) option(name, value string) (err error) {
	switch name {
	case "tls":
		if c.TLS, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("tls=%s: want true or false", value)
		}
	case "region":
		c.Region = value
	case "ca":
		c.CAFile = value
	default:
		if known, err := c.Limits.Option(name, value); known {
			return err
		}
		return fmt.Errorf("unknown option %q: tls, region, ca, %s are known", name, s3wire.LimitOptions)
	}
	return nil
}

// validate reports every fault.
func (c Config) validate() error {
	errs := []error{c.checkExpress(), c.Limits.Validate()}
	if c.Endpoint == "" || strings.Contains(c.Endpoint, "/") {
		errs = append(errs, fmt.Errorf("endpoint %q: want HOST:PORT", c.Endpoint))
	}
	if c.Bucket == "" {
		errs = append(errs, errors.New("the store's URL names no bucket: "+form.Want))
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, errors.New("access key and secret key come together or not at all"))
	}
	return errors.Join(errs...)
}

// endpoint is the base URL of the store.
func (c Config) endpoint() string {
	if c.TLS {
		return "https://" + c.Endpoint
	}
	return "http://" + c.Endpoint
}

// name is the store's URL for messages.
func (c Config) name(path string) string {
	var query []string
	if !c.TLS {
		query = append(query, "tls=false")
	}
	query = append(query, c.Limits.Query()...)
	s := "minio://" + c.Endpoint + "/" + path
	if len(query) > 0 {
		s += "?" + strings.Join(query, "&")
	}
	return s
}
