package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultInterval between two pushes is what collectors expect of a service.
const DefaultInterval = 30 * time.Second

// Config of a process's telemetry.
type Config struct {
	// Command is what runs: up, writer, auditor, reader, cache.
	Command string
	Version string
	// OTLP is where metrics and traces are pushed: http:// or https:// for OTLP/HTTP,
	// grpc:// or grpcs:// for gRPC. Empty: what OTEL_EXPORTER_OTLP_ENDPOINT and its kin say,
	// and no push without them.
	OTLP string
	// Interval between two pushes of metrics; 0: DefaultInterval.
	Interval time.Duration
	Logger   *slog.Logger     // nil: none
	Now      func() time.Time // nil: time.Now
}

// Validate reports all faults at once. A password in the URL would be printed by whoever
// prints the URL: headers belong in OTEL_EXPORTER_OTLP_HEADERS.
func (c Config) Validate() error {
	var errs []error
	if c.OTLP != "" {
		u, err := url.Parse(c.OTLP)
		switch {
		case err != nil, u.Host == "", !knownScheme(u.Scheme):
			errs = append(errs, errors.New("--telemetry-otlp: give a URL like http://collector:4318 or grpc://collector:4317 (https, grpcs with TLS)"))
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			errs = append(errs, errors.New("--telemetry-otlp: no user, query or fragment in the URL; credentials go into OTEL_EXPORTER_OTLP_HEADERS"))
		case strings.HasPrefix(u.Scheme, "grpc") && u.Path != "" && u.Path != "/":
			errs = append(errs, fmt.Errorf("--telemetry-otlp: gRPC has no path, %q was given", u.Path))
		}
	}
	if c.Interval != 0 && (c.Interval < time.Second || c.Interval > time.Hour) {
		errs = append(errs, fmt.Errorf("--telemetry-interval %v: give 1s to 1h", c.Interval))
	}
	return errors.Join(errs...)
}

func knownScheme(s string) bool {
	return s == "http" || s == "https" || s == "grpc" || s == "grpcs"
}

// endpoints are where each signal goes, as the flag or the environment has it.
type endpoints struct {
	grpc, insecure  bool
	metrics, traces string // URLs; empty: the exporter reads the environment
	push, trace     bool
}

func (c Config) endpoints() endpoints {
	if c.OTLP != "" {
		return fromURL(c.OTLP)
	}
	if disabled := os.Getenv("OTEL_SDK_DISABLED"); strings.EqualFold(disabled, "true") {
		return endpoints{}
	}
	all := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
	return endpoints{
		grpc:  os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc",
		push:  (all || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != "") && os.Getenv("OTEL_METRICS_EXPORTER") != "none",
		trace: (all || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "") && os.Getenv("OTEL_TRACES_EXPORTER") != "none",
	}
}

func fromURL(raw string) endpoints {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoints{} // Validate refused it
	}
	e := endpoints{push: true, trace: true, insecure: u.Scheme == "http" || u.Scheme == "grpc", grpc: strings.HasPrefix(u.Scheme, "grpc")}
	if e.grpc {
		e.metrics, e.traces = u.Host, u.Host
		return e
	}
	e.metrics, e.traces = u.JoinPath("v1/metrics").String(), u.JoinPath("v1/traces").String()
	return e
}
