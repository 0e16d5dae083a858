package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/httpapi"
)

// auditorStatus is /v1/status of an auditor: the deployment, and what this process did.
type auditorStatus struct {
	*statusOut
	Audit auditor.Summary `json:"auditor"`
}

// auditorLooks is how often an auditor's pulse is taken; what it may miss is its grace, and
// where that is short, one look: the last good one is as old as a turn before the next.
const auditorLooks = 10 * time.Second

// auditorPatience is how long ago the last good look of an auditor with this grace may be.
func auditorPatience(grace time.Duration) time.Duration { return max(grace, 2*auditorLooks) }

// auditService is an auditor that can be asked how it is.
type auditService struct {
	*app
	flags *listenFlags
	tier  *tier
	aud   *auditor.Auditor
	log   *slog.Logger
}

// run runs the duties until ctx ends, and serves meanwhile.
func (s *auditService) run(ctx context.Context) error {
	around, err := s.flags.surround(s.log)
	if err != nil {
		return err
	}
	around.shown(s.tier)
	listener, err := net.Listen("tcp", s.flags.http)
	if err != nil {
		return fmt.Errorf("serve HTTP: %w; give another --http", err)
	}
	stop := newStopping()
	grace := &readGrace{catalog: s.tier.catalog, value: catalog.DefaultReadGrace}
	p := newPulse(func(ctx context.Context) error {
		return errors.Join(grace.read(ctx), s.tier.answers(ctx))
	}, auditorLooks, func() time.Duration { return auditorPatience(grace.get()) })
	deps := httpapi.Deps{
		Catalog: s.tier.catalog, Logger: s.log, Explain: s.tier.answer, Stopping: stop.drains,
		Status: func(ctx context.Context) (any, error) {
			st, err := statusOf(ctx, s.tier)
			return auditorStatus{st, s.aud.Summary()}, err
		},
		ReadyCheck: func(context.Context) error { return p.ready() },
		// Not unready for these: a restart or another process would hold them, too.
		Holds: func() []string { return s.aud.Summary().Holds },
	}
	around.fill(&deps)
	src := s.tier.audited(s.tier.watched(), s.aud)
	src.Ready = p.ready
	s.tier.watch.Watch(src)
	s.sayListening(around.scheme(), listener.Addr())
	return serveHTTP(ctx, &httpService{
		flags: s.flags, around: around, log: s.log, listener: listener, stopping: stop, handler: httpapi.Handler(deps),
		parts: []func(context.Context) error{auditing(s.aud), p.run},
	})
}
