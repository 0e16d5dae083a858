//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/atonce"
	"github.com/strandline/strandline/objstore/storetest"
)

// Real runs the conformance suite and what goes beyond it against both servers.
func Real(t *testing.T, open Opener) {
	for name, server := range map[string]func(testing.TB) *realstore.Server{
		"minio": realstore.Minio, "versitygw": realstore.Versitygw,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			t.Run("Conformance", func(t *testing.T) {
				d := mustOpen(t, open, target(t, s, "tier"))
				storetest.Run(t, func(*testing.T) objstore.Driver { return d })
			})
			t.Run("Store", func(t *testing.T) {
				d := mustOpen(t, open, target(t, s, "tier"))
				storetest.RunStore(t, func(*testing.T) objstore.Driver { return d })
			})
			t.Run("Race", func(t *testing.T) { race(t, open, target(t, s, "tier")) })
			t.Run("Prefixes", func(t *testing.T) { prefixes(t, open, target(t, s, "")) })
			t.Run("DamagedBody", func(t *testing.T) { damagedBody(t, open, target(t, s, "tier")) })
			t.Run("LargeLoser", func(t *testing.T) { largeLoser(t, open, target(t, s, "tier")) })
			t.Run("Losses", func(t *testing.T) { realLosses(t, open, s) })
			t.Run("OpenWrongly", func(t *testing.T) { openWrongly(t, open, target(t, s, "tier")) })
		})
	}
	for _, kind := range []realstore.Kind{realstore.KindMinio, realstore.KindVersitygw} {
		t.Run(string(kind)+"/TLS", func(t *testing.T) {
			t.Parallel()
			overTLS(t, open, kind)
		})
	}
}

func target(t testing.TB, s *realstore.Server, prefix string) Target {
	return Target{
		Endpoint: s.Endpoint, TLS: s.CAFile != "", CAFile: s.CAFile, Bucket: s.NewBucket(t), Prefix: prefix,
		AccessKey: s.AccessKey, SecretKey: s.SecretKey,
	}
}

func mustOpen(t testing.TB, open Opener, to Target) objstore.Driver {
	t.Helper()
	d, err := open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func mustStore(t testing.TB, d objstore.Driver) *objstore.Store {
	t.Helper()
	s, err := objstore.New(d, objstore.Config{PartSize: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// race: 16 writers of one key, half of them by one PUT and half by a conditional
// complete of two parts, through the Store as its callers use it: one wins, the object
// is the winner's, the others are told, and no upload is left.
func race(t *testing.T, open Opener, to Target) {
	const writers, rounds = 16, 3
	ctx := context.Background()
	d := mustOpen(t, open, to)
	store := mustStore(t, d)
	for round := range rounds {
		key := fmt.Sprintf("race/%d", round)
		body := func(i int) []byte {
			size := 4096
			if i%2 == 1 {
				size = 5<<20 + 1
			}
			return bytes.Repeat([]byte{byte(i)}, size)
		}
		errs := atonce.Run(writers, func(i int) error {
			if i%2 == 0 {
				_, err := store.PutOnce(ctx, key, body(i), nil)
				return err
			}
			w := store.NewWriter(ctx, key, objstore.UploadOptions{})
			_, err := w.Write(body(i))
			if err == nil {
				_, err = w.Commit()
			}
			return err
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("writers %d and %d both won", winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, objstore.ErrExists):
				t.Errorf("writer %d: %v", i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("nobody won: %v", errors.Join(errs...))
		}
		got, _, err := store.ReadAll(ctx, key, 16<<20)
		if err != nil || !bytes.Equal(got, body(winner)) {
			t.Fatalf("the object is not writer %d's: %d bytes, %v", winner, len(got), err)
		}
	}
	left, err := d.ListUploads(ctx, "race/")
	if err != nil || len(left) != 0 {
		t.Errorf("uploads left: %v %v", left, err)
	}
}

// prefixes: two tiers in one bucket do not see each other, in listings, uploads or keys.
func prefixes(t *testing.T, open Opener, to Target) {
	ctx := context.Background()
	var drivers []objstore.Driver
	for _, prefix := range []string{"one", "one1", "one/inner", ""} {
		to.Prefix = prefix
		drivers = append(drivers, mustOpen(t, open, to))
	}
	for i, d := range drivers {
		name := fmt.Sprintf("k%d/x", i)
		if _, err := d.Put(ctx, name, bytes.NewReader([]byte(name)), int64(len(name)), objstore.PutOptions{IfNoneMatch: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.CreateUpload(ctx, name+"-upload", nil); err != nil {
			t.Fatal(err)
		}
	}
	want := [][]string{
		{"inner/k2/x", "k0/x"},
		{"k1/x"},
		{"k2/x"},
		{"k3/x", "one/inner/k2/x", "one/k0/x", "one1/k1/x"},
	}
	for i, d := range drivers {
		page, err := d.List(ctx, "", "", "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		var keys, uploads []string
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if !slices.Equal(keys, want[i]) {
			t.Errorf("driver %d lists %v, want %v", i, keys, want[i])
		}
		found, err := d.ListUploads(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range found {
			uploads = append(uploads, u.Key)
		}
		slices.Sort(uploads)
		for j := range want[i] {
			if len(uploads) != len(want[i]) || uploads[j] != want[i][j]+"-upload" {
				t.Fatalf("driver %d finds uploads %v, want one for each of %v", i, uploads, want[i])
			}
		}
	}
	for _, u := range mustUploads(t, drivers[0]) {
		if err := drivers[0].Abort(ctx, u.Key, u.ID); err != nil {
			t.Errorf("aborting what the listing named: %v", err)
		}
	}
	if left := mustUploads(t, drivers[0]); len(left) != 0 {
		t.Errorf("left after the aborts: %v", left)
	}
}

func mustUploads(t *testing.T, d objstore.Driver) []objstore.Upload {
	t.Helper()
	found, err := d.ListUploads(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// largeLoser: a large create-once write of a key that exists ends as "exists" through
// the Store, whether or not the store's early 412 comes through, and changes nothing.
func largeLoser(t *testing.T, open Opener, to Target) {
	ctx := context.Background()
	d := mustOpen(t, open, to)
	store := mustStore(t, d)
	if _, err := store.PutOnce(ctx, "k", []byte("first"), nil); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("x"), 8<<20)
	before := store.Counters()
	for range 8 {
		if _, err := store.PutOnce(ctx, "k", big, nil); !errors.Is(err, objstore.ErrExists) {
			t.Errorf("got %v", err)
		}
	}
	spent := store.Counters().Sub(before)
	t.Logf("8 refused puts of 8 MiB: %v, errors %v", spent.Requests, spent.Errors)
	if got, _, err := store.ReadAll(ctx, "k", 1<<20); err != nil || string(got) != "first" {
		t.Errorf("the first writer's object holds %d bytes, %v", len(got), err)
	}
}

// damagedBody: bytes that change on the way are refused by the store, in a PUT and in a
// part, and nothing stands afterwards.
func damagedBody(t *testing.T, open Opener, to Target) {
	ctx := context.Background()
	d := mustOpen(t, open, to)
	const size = 100_000
	_, err := d.Put(ctx, "damaged", &changing{size: size}, size, objstore.PutOptions{IfNoneMatch: true})
	check(t, err, objstore.ErrUnavailable)
	_, _, err = d.Get(ctx, "damaged", objstore.Whole, "")
	check(t, err, objstore.ErrNotFound)
	id, err := d.CreateUpload(ctx, "damaged", nil)
	check(t, err, nil)
	_, err = d.UploadPart(ctx, "damaged", id, 1, &changing{size: size}, size)
	check(t, err, objstore.ErrUnavailable)
	check(t, d.Abort(ctx, "damaged", id), nil)
}

// changing is a body that reads differently after its first pass.
type changing struct{ size, at, seeks int64 }

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset == 0 {
		c.seeks++
	}
	c.at = offset
	return offset, nil
}

func (c *changing) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.size-c.at)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		p[i] = 'a'
		if c.seeks > 1 && c.at+i == c.size/2 {
			p[i] = 'b'
		}
	}
	c.at += n
	return int(n), nil
}
