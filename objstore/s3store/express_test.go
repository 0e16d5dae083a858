//go:build unix

package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/internal/s3express"
	"github.com/strandline/strandline/objstore/internal/s3test"
)

const (
	expressBucket = "logs--use1-az4--x-s3"
	expressRegion = "us-east-1"
	iamKey        = "AKIDEXPRESS"
	iamSecret     = "secret-of-express"
)

func newExpress(opts s3express.Options) *s3express.Server {
	opts.Bucket, opts.Region = expressBucket, expressRegion
	opts.AccessKey, opts.SecretKey = iamKey, iamSecret
	return s3express.New(opts)
}

// expressURL names the bucket as an operator does, but over plain HTTP.
func expressURL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?region=%s&endpoint=http://%s", expressBucket, prefix, expressRegion, s3express.Zonal(expressBucket, expressRegion))
}

// dialExpress is Open up to its first request, with the host name led to a server here:
// the one thing that is not as in production.
func dialExpress(t *testing.T, at string, url string, change func(*Config)) *Driver {
	t.Helper()
	cfg, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.AccessKey, cfg.SecretKey = iamKey, iamSecret
	if change != nil {
		change(&cfg)
	}
	d, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.transport.DialThrough(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	})
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func serve(t *testing.T, h http.Handler) (at string) {
	t.Helper()
	hs := httptest.NewServer(h)
	t.Cleanup(hs.Close)
	return hs.Listener.Addr().String()
}

func openExpress(t *testing.T, s http.Handler, prefix string) *Driver {
	t.Helper()
	d := dialExpress(t, serve(t, s), expressURL(prefix), nil)
	if _, err := d.List(t.Context(), "", "", "", 1); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestExpress runs the conformance suite through the real client: session auth, the zonal
// host name, shuffled pages with empty ones between.
func TestExpress(t *testing.T) {
	for name, opts := range map[string]s3express.Options{
		"shuffled":    {Seed: 1},
		"small pages": {Seed: 2, PageSize: 3, EmptyPages: true},
	} {
		t.Run(name, func(t *testing.T) {
			s3test.Express(t,
				func(to s3test.Target) (objstore.Driver, error) {
					return dialExpress(t, to.Endpoint, expressURL(to.Prefix), nil), nil
				},
				func(t *testing.T, prefix string) s3test.Target {
					return s3test.Target{Endpoint: serve(t, newExpress(opts)), Prefix: prefix}
				})
		})
	}
}

// TestExpressCapabilities: what the bucket's name tells.
func TestExpressCapabilities(t *testing.T) {
	d := openExpress(t, newExpress(s3express.Options{}), "tier")
	c := d.Capabilities()
	if c.OrderedList || c.StartAfter || !c.DirectoryPrefix || !c.Append || !c.RangeCopy || !c.ConditionalComplete || !c.ListUploads {
		t.Errorf("%+v", c)
	}
	for name, change := range map[string]func(*Config){
		"path style":  func(c *Config) { c.PathStyle = true },
		"no zone":     func(c *Config) { c.Bucket = "logs--x-s3" },
		"no zone two": func(c *Config) { c.Bucket = "----x-s3" },
	} {
		cfg := Config{Bucket: expressBucket, Region: expressRegion, AccessKey: "a", SecretKey: "s"}
		change(&cfg)
		if _, err := Dial(t.Context(), cfg); !errors.Is(err, objstore.ErrInvalid) || !strings.Contains(err.Error(), "directory bucket") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExpressAuth: who signs what, and that one session serves many requests.
func TestExpressAuth(t *testing.T) {
	ctx := t.Context()
	s := newExpress(s3express.Options{})
	d := openExpress(t, s, "tier")
	big := bytes.Repeat([]byte("0123456789"), 600_000)
	source, err := d.Put(ctx, "source", bytes.NewReader(big), int64(len(big)), objstore.PutOptions{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	id, err := d.CreateUpload(ctx, "joined", nil)
	if err != nil {
		t.Fatal(err)
	}
	// The server refuses a copy that is signed by a session, and all else that is not.
	p, err := d.CopyPart(ctx, "joined", id, 1, objstore.CopySource{Key: "source", ETag: source.ETag, Offset: 10, Length: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Complete(ctx, "joined", id, []objstore.Part{p}, objstore.PutOptions{IfNoneMatch: true}); err != nil {
		t.Fatal(err)
	}
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d sessions, want one", n)
	}
}

// clock is the server's: it stands until it is moved.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.at.Store(at.UnixNano())
	return c
}
func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// TestExpressRenews: sessions end while an upload runs. They are renewed by the store's
// clock: it is ahead of this machine's, or behind it, by more than a session lasts.
func TestExpressRenews(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": 7 * time.Minute, "behind": -7 * time.Minute, "alike": 0} {
		t.Run(name, func(t *testing.T) {
			serverClock, ours := newClock(time.Now().Add(skew)), newClock(time.Now())
			s := newExpress(s3express.Options{Clock: serverClock.now, SessionLife: 2 * time.Minute})
			d := openExpress(t, stampDates(s, serverClock.now), "tier")
			d.sessions.clock = ours.now
			id, err := d.CreateUpload(t.Context(), "long", nil)
			if err != nil {
				t.Fatal(err)
			}
			var parts []objstore.Part
			piece := bytes.Repeat([]byte("x"), 5<<20)
			for n := 1; n <= 3; n++ {
				p, err := d.UploadPart(t.Context(), "long", id, n, bytes.NewReader(piece), int64(len(piece)))
				if err != nil {
					t.Fatalf("part %d: %v", n, err)
				}
				parts = append(parts, p)
				serverClock.advance(110 * time.Second)
				ours.advance(110 * time.Second)
			}
			if _, err := d.Complete(t.Context(), "long", id, parts, objstore.PutOptions{IfNoneMatch: true}); err != nil {
				t.Fatal(err)
			}
			if n := s.Sessions(); n != 4 {
				t.Errorf("%d sessions in 5 minutes, want 4: each of them was nearly over at the next request", n)
			}
		})
	}
}

// TestExpressExpired: a session that the store ended before its time is dropped, and the
// next call has a new one.
func TestExpressExpired(t *testing.T) {
	clock := newClock(time.Now())
	s := newExpress(s3express.Options{Clock: clock.now})
	d := openExpress(t, s, "tier")
	clock.advance(6 * time.Minute) // ours stands still
	_, err := d.Head(t.Context(), "k")
	if !errors.Is(err, objstore.ErrDenied) && !errors.Is(err, objstore.ErrUnavailable) {
		t.Fatalf("with a session that is over: %v", err)
	}
	if _, err := d.Head(t.Context(), "k"); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("after it: %v", err)
	}
	if n := s.Sessions(); n != 2 {
		t.Errorf("%d sessions", n)
	}
}

// TestExpressOpenWrongly: what is wrong with the way to a session is told as what it is.
func TestExpressOpenWrongly(t *testing.T) {
	at := serve(t, newExpress(s3express.Options{}))
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
		says   string
	}{
		"wrong secret": {func(c *Config) { c.SecretKey = "wrong-secret" }, objstore.ErrDenied, "SignatureDoesNotMatch"},
		"unknown key":  {func(c *Config) { c.AccessKey = "AKIDOTHER" }, objstore.ErrDenied, "InvalidAccessKeyId"},
		"wrong region": {func(c *Config) { c.Region = "eu-west-1" }, objstore.ErrDenied, "region"},
		"no bucket": {func(c *Config) {
			c.Bucket = "none--use1-az4--x-s3"
		}, objstore.ErrInvalid, "create the bucket"},
	} {
		d := dialExpress(t, at, expressURL("p"), c.change)
		_, err := d.List(t.Context(), "", "", "", 1)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), iamKey) {
			t.Errorf("%s: %v, want %v and %q", name, err, c.want, c.says)
		}
	}
	nobody := dialExpress(t, "127.0.0.1:1", expressURL("p"), nil)
	if _, err := nobody.List(t.Context(), "", "", "", 1); !errors.Is(err, objstore.ErrUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dialExpress(t, at, expressURL("p"), nil).List(ended, "", "", "", 1); !errors.Is(err, objstore.ErrUnavailable) {
		t.Errorf("a call whose context had ended: %v", err)
	}
}

// TestExpressDoctor: the doctor finds nothing that is required missing, and leaves nothing.
func TestExpressDoctor(t *testing.T) {
	d := openExpress(t, newExpress(s3express.Options{Seed: 4, PageSize: 7, EmptyPages: true}), "tier")
	r, err := doctor.Run(t.Context(), d, doctor.Options{Prefix: "meta/doctor/"})
	if err != nil || !r.OK() {
		t.Errorf("%v; refused for %+v", err, r.Refused())
	}
	if c := r.Capabilities; !c.DirectoryPrefix || !c.ConditionalComplete || !c.ListUploads || !c.RangeCopy || c.OrderedList || c.StartAfter {
		t.Errorf("%+v", c)
	}
	store, err := objstore.New(d, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for o, err := range store.List(t.Context(), "", "") {
		t.Errorf("left: %s, %v", o.Key, err)
	}
	if ups, err := store.ListUploads(t.Context(), ""); err != nil || len(ups) != 0 {
		t.Errorf("uploads left: %v, %v", ups, err)
	}
}

// TestExpressPrefixes: two tiers in one bucket do not see each other, though the bucket
// lists directories only, and a partial prefix is answered from its directory.
func TestExpressPrefixes(t *testing.T) {
	s := newExpress(s3express.Options{Seed: 7, PageSize: 2})
	at := serve(t, s)
	one, two := dialExpress(t, at, expressURL("one"), nil), dialExpress(t, at, expressURL("one1"), nil)
	for i, d := range []*Driver{one, two} {
		for _, key := range []string{"seg/a.1", "seg/ab.1", "rw/a"} {
			if _, err := d.Put(t.Context(), key, strings.NewReader("x"), 1, objstore.PutOptions{IfNoneMatch: true}); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	var got []string
	store, err := objstore.New(one, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for o, err := range store.List(t.Context(), "seg/a.", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, []string{"seg/a.1"}) {
		t.Errorf("listed %v", got)
	}
}

// stampDates gives the answers the server's own clock in their Date.
func stampDates(h http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		h.ServeHTTP(w, r)
	})
}
