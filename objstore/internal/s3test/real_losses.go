//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
)

// realLosses are the silent losses that a real server shows on demand.
func realLosses(t *testing.T, open Opener, s *realstore.Server) {
	for name, run := range map[string]func(*testing.T, Opener, Target, realstore.Kind){
		"LargeCreateOnce":   largeCreateOnce,
		"ParentAndChild":    parentAndChild,
		"AbortRacesCopy":    abortRacesCopy,
		"FlippedInFlight":   flippedInFlight,
		"K33ReplaceMissing": replaceMissing,
	} {
		t.Run(name, func(t *testing.T) { run(t, open, target(t, s, "tier"), s.Kind) })
	}
}

// bareClient speaks to a target without our driver, to see what the driver cannot ask.
// Each request has a connection of its own: versitygw leaves the body of a refused
// request unread if it is in signed chunks, as this library sends it by default, and
// takes it for the next request on that connection.
func bareClient(t testing.TB, to Target) *minio.Core {
	t.Helper()
	core, err := minio.NewCore(to.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(to.AccessKey, to.SecretKey, ""), Region: "us-east-1", MaxRetries: 1,
		BucketLookup: minio.BucketLookupPath, Transport: &http.Transport{DisableKeepAlives: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// largeCreateOnce: a create-once write of 17 MiB over an object that exists is lost, as
// one PUT and as an upload, also if the object arrives while the upload is under way.
func largeCreateOnce(t *testing.T, open Opener, to Target, _ realstore.Kind) {
	ctx := context.Background()
	store := mustStore(t, mustOpen(t, open, to))
	big := make([]byte, 17<<20)
	if _, err := store.PutOnce(ctx, "k", []byte("first"), nil); err != nil {
		t.Fatal(err)
	}
	_, err := store.PutOnce(ctx, "k", big, nil)
	check(t, err, objstore.ErrExists)

	for name, late := range map[string]bool{"k": false, "late": true} {
		w := store.NewWriter(ctx, name, objstore.UploadOptions{BeforeComplete: func(ctx context.Context) error {
			if !late {
				return nil
			}
			_, err := store.PutOnce(ctx, "late", []byte("first"), nil)
			return err
		}})
		if _, err := w.Write(big); err != nil {
			t.Fatal(err)
		}
		_, err = w.Commit()
		check(t, err, objstore.ErrExists)
		if got, _, err := store.ReadAll(ctx, name, 1<<10); err != nil || string(got) != "first" {
			t.Errorf("%s: the first writer's object holds %d bytes, %v", name, len(got), err)
		}
		if left, err := store.ListUploads(ctx, name); err != nil || len(left) != 0 {
			t.Errorf("%s: uploads left: %v %v", name, left, err)
		}
	}
}

// parentAndChild: why no key may be a "/"-prefix of another. Package segment forms keys
// so; a Store cannot see it. versitygw refuses the second one, MinIO takes both and then
// hides one from every listing, so that a sweep would never find it.
func parentAndChild(t *testing.T, open Opener, to Target, kind realstore.Kind) {
	ctx := context.Background()
	store := mustStore(t, mustOpen(t, open, to))
	if _, err := store.PutOnce(ctx, "a", []byte("parent"), nil); err != nil {
		t.Fatal(err)
	}
	_, err := store.PutOnce(ctx, "a/b", []byte("child"), nil)
	if kind == realstore.KindVersitygw {
		check(t, err, objstore.ErrConflict)
		return
	}
	check(t, err, nil)
	var listed []string
	for info, err := range store.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Key)
	}
	if len(listed) != 1 || listed[0] != "a" {
		t.Errorf("MinIO lists %q now: the rule on keys may have become needless", listed)
	}
	if got, _, err := store.ReadAll(ctx, "a/b", 10); err != nil || string(got) != "child" {
		t.Errorf("the hidden object: %q, %v", got, err)
	}
}

// abortRacesCopy: an abort that overtakes a copy may leave its part behind, where no
// listing of uploads shows it (versitygw). Waiting, and aborting again, leaves nothing.
func abortRacesCopy(t *testing.T, open Opener, to Target, _ realstore.Kind) {
	ctx := context.Background()
	d := mustOpen(t, open, to)
	store := mustStore(t, d)
	body := make([]byte, 32<<20)
	src, err := store.PutOnce(ctx, "source", body, nil)
	check(t, err, nil)
	core := bareClient(t, to)
	gone := func(id string) {
		t.Helper()
		if parts, err := core.ListObjectParts(ctx, to.Bucket, to.Prefix+"/joined", id, 0, 100); err == nil || minio.ToErrorResponse(err).Code != "NoSuchUpload" {
			t.Errorf("upload %s has %d parts, %v", id, len(parts.ObjectParts), err)
		}
	}
	for range 4 {
		id, err := d.CreateUpload(ctx, "joined", nil)
		check(t, err, nil)
		var copies sync.WaitGroup
		started := make(chan struct{}, 2)
		for n := 1; n <= 2; n++ {
			copies.Go(func() {
				started <- struct{}{}
				// Whether it fails or lands is the race; both are fine.
				_, _ = d.CopyPart(ctx, "joined", id, n, objstore.CopySource{Key: "source", ETag: src.ETag, Length: int64(len(body))})
			})
		}
		<-started
		<-started
		check(t, d.Abort(ctx, "joined", id), nil)
		copies.Wait()
		check(t, d.Abort(ctx, "joined", id), nil)
		gone(id)
	}
	// The same, as callers do it.
	var id string
	w := store.NewWriter(ctx, "joined", objstore.UploadOptions{OnCreate: func(created string) error { id = created; return nil }})
	check(t, w.CopyRange(objstore.CopySource{Key: "source", ETag: src.ETag, Length: int64(len(body))}), nil)
	check(t, w.Abort(), nil)
	gone(id)
	if left, err := store.ListUploads(ctx, "joined"); err != nil || len(left) != 0 {
		t.Errorf("uploads left: %v, %v", left, err)
	}
}

// flippedInFlight: a byte that changes between us and the store is seen by the store,
// which checks the CRC-32C of each body; the Store sends it again.
func flippedInFlight(t *testing.T, open Opener, to Target, _ realstore.Kind) {
	ctx := context.Background()
	var flips atomic.Int32
	through := to
	through.Endpoint = flipper(t, to.Endpoint, &flips)
	d := mustOpen(t, open, through)
	body := bytes.Repeat([]byte("strandline"), 20_000)

	flips.Store(1)
	_, err := d.Put(ctx, "flipped", bytes.NewReader(body), int64(len(body)), objstore.PutOptions{IfNoneMatch: true})
	check(t, err, objstore.ErrUnavailable)
	_, _, err = d.Get(ctx, "flipped", objstore.Whole, "")
	check(t, err, objstore.ErrNotFound)

	id, err := d.CreateUpload(ctx, "flipped", nil)
	check(t, err, nil)
	flips.Store(1)
	_, err = d.UploadPart(ctx, "flipped", id, 1, bytes.NewReader(body), int64(len(body)))
	check(t, err, objstore.ErrUnavailable)
	part, err := d.UploadPart(ctx, "flipped", id, 1, bytes.NewReader(body), int64(len(body)))
	check(t, err, nil)
	_, err = d.Complete(ctx, "flipped", id, []objstore.Part{part}, objstore.PutOptions{IfNoneMatch: true})
	check(t, err, nil)

	flips.Store(2)
	store := mustStore(t, d)
	if _, err := store.PutOnce(ctx, "again", body, nil); err != nil {
		t.Fatal(err)
	}
	if n := store.Counters().Requests[objstore.OpPut]; n != 3 || flips.Load() != 0 {
		t.Errorf("%d puts, %d flips left", n, flips.Load())
	}
	for _, k := range []string{"flipped", "again"} {
		if got, _, err := store.ReadAll(ctx, k, 1<<20); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %d bytes, %v", k, len(got), err)
		}
	}
}

// flipper is a proxy that changes one byte in the middle of a body, as often as told.
// The host that was signed stays, and so does everything else.
func flipper(t *testing.T, endpoint string, flips *atomic.Int32) string {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", endpoint, r.In.Host
		if r.In.ContentLength < 1000 || flips.Load() == 0 {
			return
		}
		flips.Add(-1)
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body[len(body)/2] ^= 1
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}})
	t.Cleanup(proxy.Close)
	return proxy.Listener.Addr().String()
}

// replaceMissing is K33: a replacement of what is not there fails, and makes nothing.
// Stores of the past created it; nothing of ours relies on the answer, since a head
// object is created before it is replaced.
func replaceMissing(t *testing.T, open Opener, to Target, _ realstore.Kind) {
	ctx := context.Background()
	d := mustOpen(t, open, to)
	store := mustStore(t, d)
	_, err := store.PutIfMatch(ctx, "rw/absent", []byte("x"), "00000000000000000000000000000000")
	if !errors.Is(err, objstore.ErrPrecondition) || errors.Is(err, objstore.ErrAmbiguous) {
		t.Errorf("got %v", err)
	}
	id, err := d.CreateUpload(ctx, "rw/absent", nil)
	check(t, err, nil)
	part, err := d.UploadPart(ctx, "rw/absent", id, 1, bytes.NewReader([]byte("x")), 1)
	check(t, err, nil)
	_, err = d.Complete(ctx, "rw/absent", id, []objstore.Part{part}, objstore.PutOptions{IfMatch: "00000000000000000000000000000000"})
	check(t, err, objstore.ErrPrecondition)
	check(t, d.Abort(ctx, "rw/absent", id), nil)
	_, err = store.Head(ctx, "rw/absent")
	check(t, err, objstore.ErrNotFound)
}
