package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// shardFlags find whoever answers for a shard.
type shardFlags struct {
	backend backendFlags
	clientFlags

	epoch uint32
	look  func(ctx context.Context, t *tier) error // at the tier, before the owner is asked; nil: none
}

func (s *shardFlags) register(f *pflag.FlagSet) {
	s.backend.register(f)
	s.clientFlags.register(f, "", "URL of a writer; several with commas between (default: the owner's, from the catalog)")
	f.Uint32Var(&s.epoch, "epoch", 0, "a closed epoch: its chains are answered for by the catalog (default: the open one)")
}

// chain is the shard's of the epoch that was given; 0: the open one.
func (s *shardFlags) chain(shard segment.Shard) segment.Chain {
	return segment.Chain{Epoch: segment.Epoch(s.epoch), Shard: shard}
}

// withOwner runs f with a client that gets to the shard's owner: by the servers given, else
// by the chain row. Chains of closed epochs have none, and the catalog answers for them.
func (a *app) withOwner(cmd *cobra.Command, s *shardFlags, shard segment.Shard, f func(ctx context.Context, c *client.Client) error) (err error) {
	ctx := cmd.Context()
	if s.server != "" {
		c, err := a.newClient(s.server, &s.caller)
		if err != nil {
			return err
		}
		return asked(f(ctx, c))
	}
	t, err := s.backend.open(ctx, modeWrite)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	c, err := a.ownerOf(ctx, t, &s.caller, s.chain(shard))
	if err != nil {
		return err
	}
	if s.look != nil {
		if err := s.look(ctx, t); err != nil {
			return err
		}
	}
	return asked(f(ctx, c))
}

// ownerOf is a client of a chain's living owner. Epoch 0 is the newest.
func (a *app) ownerOf(ctx context.Context, t *tier, caller *callerFlags, chain segment.Chain) (*client.Client, error) {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	top, err := epochOf(tops, chain.Epoch)
	if err != nil {
		return nil, err
	}
	if uint32(chain.Shard) >= top.Shards {
		return nil, usage("shard %d: epoch %d has the shards 0 to %d", chain.Shard, top.Epoch, top.Shards-1)
	}
	row, err := t.catalog.Chain(ctx, segment.Chain{Epoch: top.Epoch, Shard: chain.Shard})
	if err != nil {
		return nil, err
	}
	if row.Closed {
		return catalogClient(t, top)
	}
	now, err := t.catalog.Now(ctx)
	if err != nil {
		return nil, err
	}
	if !live(&row, now) {
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf(
			"nobody serves shard %d of epoch %d now: start its writer; strandline status shows what the catalog knows of it", chain.Shard, top.Epoch)}
	}
	return a.newClient(row.Address, caller)
}

// epochOf is one epoch of a list; 0: the newest.
func epochOf(tops []catalog.Topology, epoch segment.Epoch) (catalog.Topology, error) {
	if len(tops) == 0 {
		return catalog.Topology{}, fmt.Errorf("this deployment has no epoch yet; start it with strandline up, writer or topology set")
	}
	if epoch == 0 {
		return newest(tops), nil
	}
	if top := catalog.EpochIn(tops, epoch); top != nil {
		return *top, nil
	}
	return catalog.Topology{}, usage("--epoch %d: there is none; see strandline topology show", epoch)
}

// catalogClient asks this process: what a reader's HTTP surface says of catalog and bucket.
func catalogClient(t *tier, top catalog.Topology) (*client.Client, error) {
	reader, err := coldload.New(t.catalog, t.reads, coldload.Config{})
	if err != nil {
		return nil, err
	}
	h := httpapi.Handler(httpapi.Deps{Reader: reader, Catalog: t.catalog, Epoch: top.Epoch, Shards: top.Shards})
	return client.New(client.Config{URL: "http://catalog", HTTP: &http.Client{Transport: inProcess{h}}, Patience: followPatience})
}

// inProcess answers requests by a handler, while it writes.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	pr, pw := io.Pipe()
	w := &answer{header: http.Header{}, body: pw, begun: make(chan struct{})}
	go func() {
		p.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = pw.Close() // a pipe's Close does not fail
	}()
	stop := context.AfterFunc(r.Context(), func() { _ = pr.CloseWithError(r.Context().Err()) }) // likewise
	<-w.begun
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Header: w.sent, Request: r,
		Body: &answerBody{pr, stop}, ContentLength: -1, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// answerBody is the reading end of an answer.
type answerBody struct {
	*io.PipeReader

	stop func() bool
}

func (b *answerBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// answer is the writing end: its handler waits for whoever reads.
type answer struct {
	header, sent http.Header
	code         int
	body         *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
}

func (w *answer) Header() http.Header { return w.header }
func (w *answer) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *answer) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.begun)
	})
}

func (w *answer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
