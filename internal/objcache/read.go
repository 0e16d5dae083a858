package objcache

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

// Get implements objstore.Driver. An instance is asked for bytes only: whatever else it
// says, the store is asked, so "not there" and "changed" are always the store's.
func (d *Driver) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	in := d.of(key)
	switch {
	case !d.cfg.Reads || in == nil, r.Length == 0 && r.Offset > 0:
		return d.Driver.Get(ctx, key, r, ifMatch)
	case in.owed.holds(key): // it may still have what we deleted
		return d.Driver.Get(ctx, key, r, ifMatch)
	}
	if in.allow() {
		b, info, err := d.ask(ctx, in, key, r, ifMatch)
		d.judge(ctx, in, err)
		if err == nil {
			d.stats.reads.Add(1)
			return b, info, nil
		}
	}
	d.stats.fallbacks.Add(1)
	return d.Driver.Get(ctx, key, r, ifMatch)
}

// ask opens a range at an instance.
func (d *Driver) ask(ctx context.Context, in *instance, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if r == (objstore.Range{}) {
		r = objstore.Whole
	}
	// Keys hold no byte that a path would have to escape (objstore.CheckKey).
	url := in.addr + wire.PathObjects + key + "?offset=" + strconv.FormatInt(r.Offset, 10) + "&length=" + strconv.FormatInt(r.Length, 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	if ifMatch != "" {
		req.Header.Set("If-Match", `"`+ifMatch+`"`)
	}
	c, err := d.do(ctx, req, d.cfg.AnswerTimeout)
	if err != nil {
		c.close()
		return nil, objstore.Info{}, err
	}
	info, off, n, err := answered(c.Response, key, r, ifMatch)
	if err != nil {
		c.close()
		return nil, objstore.Info{}, err
	}
	return &body{
		d: d, in: in, ctx: ctx, call: c, info: info,
		frames: wire.Reader{R: c.Body, Seed: wire.Seed(key, info.ETag), Off: off, End: off + n},
	}, info, nil
}

// answered holds the head of an answer against the question.
func answered(resp *http.Response, key string, r objstore.Range, ifMatch string) (info objstore.Info, off, n int64, err error) {
	if t := resp.Header.Get("Content-Type"); t != wire.FramesType {
		return info, 0, 0, fmt.Errorf("this is no instance of the object cache: it answers with %q", t)
	}
	if info, err = wire.DecodeObject(key, resp.Header.Get(wire.HeaderObject)); err != nil {
		return info, 0, 0, err
	}
	if ifMatch != "" && info.ETag != ifMatch {
		return info, 0, 0, fmt.Errorf("ETag %s was asked for, %s came", ifMatch, info.ETag)
	}
	if off, n, err = r.Resolve(info.Size); err != nil {
		return info, 0, 0, err
	}
	if want := wire.Length(off, off+n); resp.ContentLength != want {
		return info, 0, 0, fmt.Errorf("%d bytes announced, a range of %d takes %d", resp.ContentLength, n, want)
	}
	return info, off, n, nil
}
