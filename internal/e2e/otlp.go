//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/segment"
)

// sender runs telemetrygen again and again: OTLP logs by a sender that nobody here wrote.
type sender struct {
	*run
	service  string // the stream
	shard    segment.Shard
	endpoint string
	http     bool
	binary   string
	sent     atomic.Int64 // records that the sender was told are taken
}

const (
	sentARun = 60 // records of one telemetrygen
	sentRate = 40 // a second
)

// newSender names a service whose stream is of one of these shards.
func (r *run) newSender(ctx context.Context, of []segment.Shard, endpoint string, overHTTP bool) (*sender, error) {
	binary, err := realstore.Build(ctx, "telemetrygen")
	if err != nil {
		return nil, err
	}
	s := &sender{run: r, endpoint: endpoint, http: overHTTP, binary: binary}
	for n := 0; ; n++ {
		s.service = fmt.Sprintf("otlp-%s-%d", map[bool]string{true: "http", false: "grpc"}[overHTTP], n)
		s.shard = segment.ShardOf(s.service, shards)
		for _, x := range of {
			if s.shard == x {
				return s, nil
			}
		}
	}
}

// send sends until ctx ends; the last records are waited for as long as last lives.
func (s *sender) send(ctx, last context.Context) error {
	args := []string{
		"logs", "--otlp-insecure", "--otlp-endpoint", strings.TrimPrefix(strings.TrimPrefix(s.endpoint, "http://"), "grpc://"), "--service", s.service,
		"--logs", strconv.Itoa(sentARun), "--rate", strconv.Itoa(sentRate), "--batch-size", "20", "--timeout", "60s",
	}
	if s.http {
		args = append(args, "--otlp-http")
	}
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("telemetrygen-%s-%d", s.service, n)
		p, err := s.site.child(name, filepath.Join(s.site.Dir("senders"), name+".log"), exec.Command(s.binary, args...))
		if err != nil {
			return err
		}
		if _, err := s.site.finished(last, p); err != nil {
			return fmt.Errorf("%s was refused, or never answered: %w\n%s", name, err, p.out)
		}
		s.sent.Add(sentARun)
	}
	return nil
}

// judgeSent compares counts: what the sender was told, what the bucket has, and that no two
// are the same.
func judgeSent(service string, sent int, read []row) (faults []string) {
	different := map[string]bool{}
	for _, r := range read {
		different[r.payload] = true
	}
	if len(read) != sent || len(different) != sent {
		faults = append(faults, fmt.Sprintf("OTLP: %d records of %s were taken, %d are there, %d of them different", sent, service, len(read), len(different)))
	}
	return faults
}
