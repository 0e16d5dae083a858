package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// shardFlags find whoever answers for a shard.
type shardFlags struct {
	backend backendFlags
	server  string
	epoch   uint32
	look    func(ctx context.Context, t *tier) error // at the tier, before the owner is asked; nil: none
}

func (s *shardFlags) register(f *pflag.FlagSet) {
	s.backend.register(f)
	f.StringVar(&s.server, "server", "", "URL of the shard's writer (default: the owner's, from the catalog)")
	f.Uint32Var(&s.epoch, "epoch", 0, "a closed epoch: its chains are answered for by the catalog (default: the open one)")
}

// withOwner runs f with a client of the shard's owner: the one given, else the one in the
// chain row. Chains of closed epochs have none, and the catalog answers for them.
func (a *app) withOwner(cmd *cobra.Command, s *shardFlags, shard segment.Shard, f func(ctx context.Context, c *client) error) (err error) {
	ctx := cmd.Context()
	if s.server != "" {
		c, err := newClient(s.server, "", a.err)
		if err != nil {
			return err
		}
		return f(ctx, c)
	}
	t, err := s.backend.open(ctx, modeWrite)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	c, err := a.ownerOf(ctx, t, segment.Epoch(s.epoch), shard)
	if err != nil {
		return err
	}
	if s.look != nil {
		if err := s.look(ctx, t); err != nil {
			return err
		}
	}
	return f(ctx, c)
}

// ownerOf is a client of a shard's living owner. epoch 0 is the newest.
func (a *app) ownerOf(ctx context.Context, t *tier, epoch segment.Epoch, shard segment.Shard) (*client, error) {
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	top, err := epochOf(tops, epoch)
	if err != nil {
		return nil, err
	}
	if uint32(shard) >= top.Shards {
		return nil, usage("shard %d: epoch %d has the shards 0 to %d", shard, top.Epoch, top.Shards-1)
	}
	row, err := t.catalog.Chain(ctx, segment.Chain{Epoch: top.Epoch, Shard: shard})
	if err != nil {
		return nil, err
	}
	if row.Closed {
		return catalogClient(t, top.Epoch)
	}
	now, err := t.catalog.Now(ctx)
	if err != nil {
		return nil, err
	}
	if row.Address == "" || !now.Before(row.LeaseEnd) {
		return nil, &exitError{code: exitUnavailable, err: fmt.Errorf(
			"nobody serves shard %d of epoch %d now: start its writer; strandline status shows what the catalog knows of it", shard, top.Epoch)}
	}
	return newClient(row.Address, "", a.err)
}

// epochOf is one epoch of a list; 0: the newest.
func epochOf(tops []catalog.Topology, epoch segment.Epoch) (catalog.Topology, error) {
	if len(tops) == 0 {
		return catalog.Topology{}, fmt.Errorf("this deployment has no epoch yet; start it with strandline up, writer or topology set")
	}
	if epoch == 0 {
		return newest(tops), nil
	}
	for _, t := range tops {
		if t.Epoch == epoch {
			return t, nil
		}
	}
	return catalog.Topology{}, usage("--epoch %d: there is none; see strandline topology show", epoch)
}

// catalogClient asks this process: what the HTTP surface says of chains without a writer.
func catalogClient(t *tier, epoch segment.Epoch) (*client, error) {
	reader, err := coldload.New(t.catalog, t.classes, coldload.Config{})
	if err != nil {
		return nil, err
	}
	h := httpapi.Handler(httpapi.Deps{Reader: reader, Catalog: t.catalog, Epoch: epoch})
	return &client{base: "http://catalog", http: &http.Client{Transport: inProcess{h}}, log: io.Discard}, nil
}

// inProcess answers requests by a handler.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &answer{header: http.Header{}, code: http.StatusOK}
	p.handler.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Request: r,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// answer is a response in memory: a pull's at most.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *answer) Header() http.Header         { return w.header }
func (w *answer) WriteHeader(code int)        { w.code = code }
func (w *answer) Write(b []byte) (int, error) { return w.body.Write(b) }
