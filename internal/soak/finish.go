//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// finish lets everything come to rest and judges it: the writers publish and end, the rows
// are compared, what was set aside is salvaged, the duties run dry, and all is compared again.
func (r *run) finish(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"all shards serve", r.serveAgain},
		{"consumers end", r.consumeAll},
		{"writers stop", r.stopWriters},
		{"sabotage", r.sabotage},
		{"judge the rows", r.judgeRows},
		{"salvage", r.salvage},
		{"run dry", r.runDry},
		{"judge what is left", r.judgeLeft},
	} {
		r.event("%s", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (r *run) sabotage(ctx context.Context) error {
	if r.opts.Sabotage == nil {
		return nil
	}
	return r.opts.Sabotage(ctx, r)
}

// serveAgain: nothing is broken any more, so every shard's owner is ready, and publishes.
func (r *run) serveAgain(ctx context.Context) error {
	client := newClient()
	defer client.CloseIdleConnections()
	for _, url := range r.fleet.urls() {
		for _, act := range []struct{ method, path string }{{http.MethodGet, "/readyz"}, {http.MethodPost, "/v1/flush"}} {
			err := child.Poll(ctx, startTimeout, url+act.path, func() (bool, error) {
				err := call(ctx, client, act.method, url+act.path, "", nil)
				return err == nil, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// consumeAll has every consumer read to the end, and removes it: it would hold back slots.
func (r *run) consumeAll(ctx context.Context) error {
	for s := range segment.Shard(shards) {
		who := caller{http: newClient(), shard: s}
		err := r.consumeShard(ctx, who)
		who.http.CloseIdleConnections()
		if err != nil {
			return fmt.Errorf("shard %d: %w", s, err)
		}
	}
	return nil
}

func (r *run) consumeShard(ctx context.Context, who caller) error {
	var list []httpapi.ConsumerOut
	base := r.fleet.owner(who.shard)
	err := child.Poll(ctx, startTimeout, "list consumers", func() (bool, error) {
		err := call(ctx, who.http, http.MethodGet, fmt.Sprintf("%s/v1/shards/%d/consumers", base, who.shard), "", &list)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	for _, k := range list {
		if err := r.consumeOne(ctx, who.shard, k.Name); err != nil {
			return err
		}
		r.ledger.leaving(fmt.Sprintf("%d/%s", who.shard, k.Name))
		err := child.Poll(ctx, startTimeout, "remove a consumer", func() (bool, error) {
			var p *problem
			err := call(ctx, who.http, http.MethodDelete, base+consumerPath(who.shard, k.Name), "", nil)
			return err == nil || errors.As(err, &p) && p.Code == "no-such-consumer", err
		})
		if err != nil {
			return err
		}
	}
	// The catalog hears of it with the next slot; some rows more make one.
	name := nameOn(who.shard, "small")
	p := r.newProducer(uint64(900+who.shard), name)
	defer p.who.http.CloseIdleConnections()
	p.id, p.next = "end:"+name, r.ledger.streams[name].sent
	b := p.make()
	b.ack = "shared"
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.send(within, b)
}

func (r *run) consumeOne(ctx context.Context, s segment.Shard, name string) error {
	key := fmt.Sprintf("%d/%s", s, name)
	if r.ledger.consumers[key] == nil { // removed, and back with an older cursor of the chain
		r.ledger.consumers[key] = &consumerLog{shard: s}
	}
	c := r.newConsumer(uint64(800+s), s, name)
	defer c.who.http.CloseIdleConnections()
	r.fleet.serves(r.fleet.owner(s), r.fleet.diskOf(r.fleet.owner(s)), []segment.Shard{s})
	return child.Poll(ctx, startTimeout, "consumer "+key+" reads to the end", func() (bool, error) {
		n, err := c.round(ctx, false)
		return n == 0 && err == nil, err
	})
}

// stopWriters ends all but the server; nothing is left on a disk that was not taken away.
func (r *run) stopWriters(context.Context) error {
	var errs []error
	for _, w := range r.fleet.writers {
		if code, err := w.stop(); code != exitOK {
			r.complain("a writer that nothing is in the way of did not stop cleanly: %v", err)
			if code < 0 {
				errs = append(errs, err)
			}
		}
	}
	for _, a := range r.fleet.auditors {
		p := a.proc
		a.proc = nil
		if code, err := p.Stop(); err != nil || code != exitOK {
			errs = append(errs, err, &child.EndedError{Process: p})
		}
	}
	return errors.Join(errs...)
}

// salvage appends again what was set aside. Each writer has all shards once, so that every
// directory that it still has is judged.
func (r *run) salvage(ctx context.Context) error {
	for s := range segment.Shard(shards) {
		row, err := r.chain(ctx, s)
		if err != nil {
			return err
		}
		r.ledger.salvaging(s, row.NextSeq)
	}
	for _, w := range r.fleet.writers {
		for s := range segment.Shard(shards) {
			if !w.owns(s) {
				w.give(s)
			}
		}
		if err := w.start(ctx, true); err != nil {
			return err
		}
		_, p, err := r.site.run(ctx, "salvage", r.site.with("salvage", "--all", "--dir", w.dir())...)
		if err != nil {
			return err
		}
		if p.Code() != exitOK {
			r.complain("salvage of writer %s: %v", w.name, &child.EndedError{Process: p})
		}
		if code, err := w.stop(); code != exitOK {
			r.complain("writer %s after salvage: %v", w.name, err)
		}
	}
	return nil
}

// dryLinger outlasts the lease that a killed auditor leaves behind, and every grace.
const dryLinger = "20s"

// runDry runs the duties until none is due and none comes due.
func (r *run) runDry(ctx context.Context) error {
	dry := func() (bool, error) {
		_, p, err := r.site.run(ctx, "auditor-once", r.site.with(append([]string{"auditor", "--once", "--linger", dryLinger, "--json"}, auditFlags...)...)...)
		if err != nil {
			return false, err
		}
		if p.Code() != exitOK {
			return false, &child.EndedError{Process: p}
		}
		return r.quiet(ctx)
	}
	return child.Poll(ctx, 3*startTimeout, "duties run dry", dry)
}

// quiet says whether no marker waits on anything but what takes a day by design (burn, sweep).
func (r *run) quiet(ctx context.Context) (bool, error) {
	st, err := r.site.catalog.Status(ctx)
	if err != nil {
		return false, err
	}
	for duty, m := range st.Markers {
		daily := duty == catalog.DutySweep || duty == catalog.DutyOrphan
		if m.Standing > 0 && (!daily || m.Oldest.Before(st.Now.Add(time.Hour))) {
			return false, fmt.Errorf("duty %s has %d markers standing, %d due; last error %q", duty, m.Standing, m.Due, m.LastError)
		}
	}
	return true, nil
}

// judgeLeft is the last word: the rows again, the bucket, fsck.
func (r *run) judgeLeft(ctx context.Context) error {
	if err := r.judgeRows(ctx); err != nil {
		return err
	}
	if err := r.judgeBucket(ctx); err != nil {
		return err
	}
	out, p, err := r.site.run(ctx, "fsck", r.site.with("fsck", "--json")...)
	if err != nil {
		return err
	}
	var verdict struct{ Verdict string }
	if err := json.Unmarshal(out, &verdict); err != nil {
		return fmt.Errorf("fsck printed %.300q: %w", out, &child.EndedError{Process: p})
	}
	if p.Code() != exitOK || verdict.Verdict != "clean" {
		r.complain("leak or damage: fsck ended with %d: %.3000s", p.Code(), out)
	}
	return nil
}
