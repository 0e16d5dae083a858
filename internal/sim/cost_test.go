package sim_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/sim"
	"github.com/strandline/strandline/objstore"
)

// TestI9 counts what seeds cost in which nothing goes wrong.
func TestI9(t *testing.T) {
	sum := sim.Coverage{}
	for n := range uint64(max(8, *seeds/50)) {
		r := run(t, sim.Calm(*from+n))
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		sum.Add(r.Coverage)
	}
	for _, what := range []string{"cost outputs", "cost reaped", "duty pack-merge: outputs", "duty tail-fill: outputs"} {
		t.Logf("%s: %d", what, sum[what])
		if sum[what] == 0 {
			t.Errorf("no seed came by: %s", what)
		}
	}
}

// wasteful asks for everything twice, and puts an upload before each object.
type wasteful struct{ objstore.Driver }

func (d wasteful) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if body, _, err := d.Driver.Get(ctx, key, r, ifMatch); err == nil {
		_ = body.Close()
	}
	return d.Driver.Get(ctx, key, r, ifMatch)
}

func (d wasteful) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if id, err := d.CreateUpload(ctx, key, opts.Meta); err == nil {
		_ = d.Abort(ctx, key, id)
	}
	return d.Driver.Put(ctx, key, body, size, opts)
}

// TestI9Notices: an auditor that wastes requests is noticed, each kind of them.
func TestI9Notices(t *testing.T) {
	cfg := sim.Calm(1)
	cfg.Hooks.Requests = func(_ string, d objstore.Driver) objstore.Driver { return wasteful{d} }
	r := run(t, cfg)
	found := strings.Join(r.Findings, "\n")
	for _, what := range []string{"PUT-like requests", "GETs of slots", "GETs of objects"} {
		if !strings.Contains(found, what) {
			t.Errorf("wasted %s were not noticed: %s", what, found)
		}
	}
}
