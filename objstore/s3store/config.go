package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
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

	// AccessKey and SecretKey are taken as they are. Both empty: the SDK's chain
	// (environment, shared files, SSO, container, instance).
	AccessKey, SecretKey string

	PathStyle   bool   // buckets as paths instead of host names
	CAFile      string // PEM certificates to trust beside the system's
	Concurrency int    // connections kept ready; 0: s3wire.DefaultConcurrency
}

const usage = "want s3://BUCKET/PREFIX?region=&endpoint=&path-style="

// ParseURL reads s3://bucket/prefix?region=&endpoint=&path-style=&ca=. Credentials have
// no place in a URL and are refused there.
func ParseURL(s string) (Config, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The text of err repeats the URL, which may hold a password.
		return Config{}, fmt.Errorf("store URL: not readable: %s", usage)
	}
	if u.User != nil {
		return Config{}, fmt.Errorf("store URL: it holds credentials: put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if u.Scheme != "s3" || u.Host == "" {
		return Config{}, fmt.Errorf("store URL %s: %s", s, usage)
	}
	cfg := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, fmt.Errorf("store URL %s: %w", s, err)
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "region":
			cfg.Region = value
		case "endpoint":
			cfg.Endpoint = value
		case "path-style":
			if cfg.PathStyle, err = strconv.ParseBool(value); err != nil {
				return Config{}, fmt.Errorf("store URL %s: path-style=%s: want true or false", s, value)
			}
		case "ca":
			cfg.CAFile = value
		default:
			return Config{}, fmt.Errorf("store URL %s: unknown option %q: region, endpoint, path-style and ca are known", s, name)
		}
	}
	return cfg, cfg.validate()
}

func (c Config) validate() error {
	if c.Bucket == "" {
		return fmt.Errorf("the store's URL names no bucket: %s", usage)
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("access key and secret key come together or not at all")
	}
	_, err := c.endpoint()
	return err
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
		return "", errors.New("endpoint: it holds credentials: put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "":
		return "", fmt.Errorf("endpoint %s: want https://HOST:PORT", s)
	}
	return s, nil
}

// load resolves region and credentials, and tries to get the latter: without any, each
// call would fail with a text about instance metadata.
func (c Config) load(ctx context.Context) (aws.Config, error) {
	var options []func(*config.LoadOptions) error
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.AccessKey != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the shared AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	return cfg, nil
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
	return s
}
