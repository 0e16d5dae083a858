package s3store

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/strandline/strandline/objstore/internal/s3wire"
)

const defaultRegion = "us-east-1"

// Config says which bucket to open and how to reach it.
type Config struct {
	// Endpoint is a URL (http or https; https if it has no scheme), "" for AWS in the
	// region. Whether TLS is used stands here and nowhere else.
	Endpoint string
	Region   string // "": from the environment or the shared config, else us-east-1
	Bucket   string
	Prefix   string // keys stand under it; without slashes around it

	// AccessKey, SecretKey and, for temporary ones, SessionToken are taken as they are.
	// All empty: the SDK's chain (environment, web identity, shared files, SSO, container,
	// instance).
	AccessKey, SecretKey, SessionToken string

	PathStyle bool          // buckets as paths instead of host names
	CAFile    string        // PEM certificates to trust beside the system's; "": those of AWS_CA_BUNDLE, if set
	Limits    s3wire.Limits // what the store cannot do or take
}

const keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

// form is never changed.
var form = s3wire.URLForm{Scheme: "s3", Want: "want s3://BUCKET/PREFIX?region=&endpoint=&path-style=", Keys: keys}

// ParseURL reads s3://bucket/prefix?region=&endpoint=&path-style=&ca=&parts=equal&range-copy=false&concurrency=N.
// Credentials have no place in a URL and are refused there.
func ParseURL(s string) (Config, error) {
	var cfg Config
	u, err := s3wire.ParseURL(s, form, cfg.option)
	if err != nil {
		return Config{}, err
	}
	cfg.Bucket, cfg.Prefix = u.Host, strings.Trim(u.Path, "/")
	return cfg, cfg.validate()
}

func (c *Config) option(name, value string) (err error) {
	switch name {
	case "region":
		c.Region = value
	case "endpoint":
		c.Endpoint = value
	case "path-style":
		if c.PathStyle, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("path-style=%s: want true or false", value)
		}
	case "ca":
		c.CAFile = value
	default:
		if known, err := c.Limits.Option(name, value); known {
			return err
		}
		return fmt.Errorf("unknown option %q: region, endpoint, path-style, ca, %s are known", name, s3wire.LimitOptions)
	}
	return nil
}

// validate reports every fault.
func (c Config) validate() error {
	_, err := c.endpoint()
	errs := []error{err, c.checkExpress(), c.Limits.Validate()}
	if c.Bucket == "" {
		errs = append(errs, errors.New("the store's URL names no bucket: "+form.Want))
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, errors.New("access key and secret key come together or not at all"))
	}
	return errors.Join(errs...)
}

// endpoint is the base URL of the store, "" for AWS.
func (c Config) endpoint() (string, error) {
	if c.Endpoint == "" {
		return "", nil
	}
	s := c.Endpoint
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", errors.New("endpoint: not a URL: want https://HOST:PORT") // err repeats the text
	case u.User != nil:
		return "", errors.New("endpoint: it holds credentials: put them into " + keys)
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "":
		return "", fmt.Errorf("endpoint %s: want https://HOST:PORT", s)
	}
	return s, nil
}

// name is the store's URL for messages.
func (c Config) name(path, region, endpoint string) string {
	s := "s3://" + path + "?region=" + region
	if endpoint != "" {
		s += "&endpoint=" + endpoint
	}
	if c.PathStyle {
		s += "&path-style=true"
	}
	for _, option := range c.Limits.Query() {
		s += "&" + option
	}
	return s
}
