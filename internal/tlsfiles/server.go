package tlsfiles

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/internal/filewatch"
)

// Config names the files of a listener.
type Config struct {
	Cert, Key string
	// ClientCA holds the authorities of clients; empty: clients show no certificate.
	ClientCA string
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("a certificate and its key come together")
	case c.Cert == "" && c.ClientCA != "":
		return errors.New("a client CA needs a certificate and a key to serve TLS with")
	}
	return nil
}

// Server is the TLS of a listener, as its files are now. Close it.
type Server struct {
	cfg    Config
	log    *slog.Logger
	watch  *filewatch.Watcher
	now    atomic.Pointer[set]
	ends   atomic.Int64 // Unix seconds: when the certificate expires
	failed atomic.Int64

	// Only the watcher's one call at a time touches these.
	seen   sums
	broken error
	said   time.Time
}

// set is what one generation of the files says.
type set struct {
	http, grpc *tls.Config
}

const (
	brokenEvery = time.Minute
	// soon is when a certificate's end is warned of: its renewal did not happen.
	soon = 7 * 24 * time.Hour
)

// Open reads the files and follows their changes.
func Open(cfg Config, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log}
	texts, seen, err := readAll(cfg.Cert, cfg.Key, cfg.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if err := s.use(texts); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	s.seen = seen
	names := []string{cfg.Cert, cfg.Key}
	if cfg.ClientCA != "" {
		names = append(names, cfg.ClientCA)
	}
	if s.watch, err = filewatch.Start(names, s.reload); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the watch; connections are still taken, with the files as they were last.
func (s *Server) Close() error { return s.watch.Close() }

// HTTP is what a listener of HTTP/1.1 needs. Each handshake takes the set that is in force then.
func (s *Server) HTTP() *tls.Config { return s.follow(func(now *set) *tls.Config { return now.http }) }

// GRPC is the same set for a listener of gRPC, over HTTP/2.
func (s *Server) GRPC() *tls.Config { return s.follow(func(now *set) *tls.Config { return now.grpc }) }

func (s *Server) follow(of func(*set) *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: of(s.now.Load()).NextProtos,
		// Libraries want to see a certificate before the first handshake.
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &of(s.now.Load()).Certificates[0], nil },
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return of(s.now.Load()), nil },
	}
}

// Expires is the end of the certificate in force.
func (s *Server) Expires() time.Time { return time.Unix(s.ends.Load(), 0) }

// Failures counts changed files that were not put in force.
func (s *Server) Failures() int64 { return s.failed.Load() }

// use puts a set in force if it holds together.
func (s *Server) use(texts [3][]byte) error {
	cert, err := pair(s.cfg.Cert, s.cfg.Key, texts[0], texts[1])
	if err != nil {
		return err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*cert}}
	if s.cfg.ClientCA != "" {
		if cfg.ClientCAs, err = authorities(s.cfg.ClientCA, texts[2]); err != nil {
			return err
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	end := expires(cert)
	if left := time.Until(end); left < soon {
		s.log.Warn("the certificate ends soon, or has ended: renew it", "file", s.cfg.Cert, "expires", end)
	}
	s.ends.Store(end.Unix())
	// Tickets of a session are good for one of these configs only: a client CA that is gone
	// lets nobody in by an old ticket.
	grpc := cfg.Clone()
	grpc.NextProtos = []string{"h2"}
	s.now.Store(&set{http: cfg, grpc: grpc})
	return nil
}

// reload puts changed files in force, as a set, or complains and keeps the old one. A
// certificate whose key is written a moment later is such a set until then.
func (s *Server) reload() {
	texts, seen, err := readAll(s.cfg.Cert, s.cfg.Key, s.cfg.ClientCA)
	if err == nil && s.broken == nil && seen == s.seen {
		return
	}
	if err == nil {
		err = s.use(texts)
	}
	if err != nil {
		s.complain(err, seen)
		return
	}
	s.seen, s.broken = seen, nil
	s.log.Info("TLS files read again", "cert", s.cfg.Cert, "expires", s.Expires())
}

func (s *Server) complain(err error, seen sums) {
	if s.broken != nil && seen == s.seen && time.Since(s.said) < brokenEvery {
		return
	}
	if s.broken == nil || seen != s.seen {
		s.failed.Add(1)
	}
	s.seen, s.broken, s.said = seen, err, time.Now()
	s.log.Error("THE TLS FILES ARE BROKEN: the last sound ones stay in force; mend them", "error", err)
}
