//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
)

// openWrongly: what is wrong with the way to a store shows when it is opened, as what
// it is.
func openWrongly(t *testing.T, open Opener, to Target) {
	for name, c := range map[string]struct {
		change func(*Target)
		want   error
	}{
		"wrong secret": {func(to *Target) { to.SecretKey = "wrong-secret-key" }, objstore.ErrDenied},
		"unknown key":  {func(to *Target) { to.AccessKey = "unknown-access-key" }, objstore.ErrDenied},
		"no bucket":    {func(to *Target) { to.Bucket = "no-such-bucket" }, objstore.ErrInvalid},
		"TLS":          {func(to *Target) { to.TLS = true }, objstore.ErrInvalid},
		"nobody there": {func(to *Target) { to.Endpoint = "127.0.0.1:1" }, objstore.ErrUnavailable},
		"bad prefix":   {func(to *Target) { to.Prefix = "a/../b" }, objstore.ErrInvalid},
		"no secret":    {func(to *Target) { to.SecretKey = "" }, objstore.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := to
			c.change(&wrong)
			d, err := open(wrong)
			if err == nil {
				t.Fatal("opened", d.Close())
			}
			check(t, err, c.want)
			for _, secret := range []string{wrong.AccessKey, wrong.SecretKey} {
				if secret != "" && bytes.Contains([]byte(err.Error()), []byte(secret)) {
					t.Errorf("%q shows %q", err, secret)
				}
			}
		})
	}
}

// storeSays is what a caller of the Store is told about a create-once write.
func storeSays(ctx context.Context, t *testing.T, d objstore.Driver, key string, body []byte) error {
	_, err := mustStore(t, d).PutOnce(ctx, key, body, nil)
	return err
}

// overTLS goes through every call over TLS, and through a crash of the server.
func overTLS(t *testing.T, open Opener, kind realstore.Kind) {
	ctx := context.Background()
	s := realstore.Own(t, kind, true)
	to := target(t, s, "tier")
	d := mustOpen(t, open, to)

	untrusting, plain := to, to
	untrusting.CAFile, plain.TLS = "", false
	_, err := open(untrusting)
	check(t, err, objstore.ErrDenied)
	if _, err = open(plain); err == nil {
		t.Error("opened without TLS")
	}

	big := bytes.Repeat([]byte("0123456789"), 600_000)
	source, err := d.Put(ctx, "source", bytes.NewReader(big), int64(len(big)), objstore.PutOptions{IfNoneMatch: true})
	check(t, err, nil)
	_, err = d.Put(ctx, "source", bytes.NewReader(big), int64(len(big)), objstore.PutOptions{IfNoneMatch: true})
	if kind == realstore.KindVersitygw && errors.Is(err, objstore.ErrAmbiguous) {
		// It says 100 Continue, then refuses and resets the connection under the body:
		// now and then the 412 is lost. The Store reads back.
		err = storeSays(ctx, t, d, "source", big)
	}
	check(t, err, objstore.ErrExists)
	_, err = d.Put(ctx, "damaged", &changing{size: 50_000}, 50_000, objstore.PutOptions{IfNoneMatch: true})
	check(t, err, objstore.ErrUnavailable)
	id, err := d.CreateUpload(ctx, "joined", nil)
	check(t, err, nil)
	p1, err := d.CopyPart(ctx, "joined", id, 1, objstore.CopySource{Key: "source", ETag: source.ETag, Offset: 10, Length: 5 << 20})
	check(t, err, nil)
	p2, err := d.UploadPart(ctx, "joined", id, 2, bytes.NewReader(big[:7]), 7)
	check(t, err, nil)

	if err := errors.Join(s.Kill(), d.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = d.Put(ctx, "down", bytes.NewReader(nil), 0, objstore.PutOptions{IfNoneMatch: true})
	check(t, err, objstore.ErrUnavailable) // refused connections: known not to be applied
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	// An upload outlives the server, and is found by its exact key even where the
	// list of all has forgotten it.
	found, err := d.ListUploads(ctx, "joined")
	check(t, err, nil)
	if len(found) != 1 || found[0].ID != id {
		t.Errorf("uploads of the key after a restart: %v, want %s", found, id)
	}
	all, err := d.ListUploads(ctx, "")
	check(t, err, nil)
	if lists := d.Capabilities().ListUploads; lists != (len(all) == 1) {
		t.Errorf("all uploads after a restart: %v, and the capability says %v", all, lists)
	}
	_, err = d.Complete(ctx, "joined", id, []objstore.Part{p1, p2}, objstore.PutOptions{IfNoneMatch: true})
	check(t, err, nil)
	body, info, err := d.Get(ctx, "joined", objstore.Suffix(9), "")
	check(t, err, nil)
	got, err := io.ReadAll(body)
	if err != nil || string(got) != string(big[5<<20+8:5<<20+10])+string(big[:7]) || info.Size != 5<<20+7 {
		t.Errorf("joined: %q of %d bytes, %v", got, info.Size, err)
	}
}
