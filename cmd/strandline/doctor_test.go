//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/fsstore"
)

// TestDoctorOnADirectory: the table, the document, the codes, and nothing left behind.
func TestDoctorOnADirectory(t *testing.T) {
	dir := t.TempDir()
	cli(t, "", "doctor", "--dir", dir).want(t, exitFailed, "strandline up")
	startUp(t, dir).end(t)
	before := files(t, dir)
	cli(t, "", "doctor", "--dir", dir).want(t, exitOK,
		"standard=file://", "CHECK", "create-once-race ", "conditional-complete true", "fit: all that is required holds", " requests in ")
	r := cli(t, "", "doctor", "--json", "--store", "express=file://"+filepath.Join(dir, "bucket"))
	r.want(t, exitOK)
	var reports []struct {
		Class        string
		OK, Whole    bool
		Checks       []struct{ Check, Outcome string }
		Capabilities map[string]any
		Requests     map[string]int
		Left         []string
	}
	if err := json.Unmarshal([]byte(r.out), &reports); err != nil || len(reports) != 1 {
		t.Fatalf("%v in %s", err, r.out)
	}
	one := reports[0]
	if one.Class != "express" || !one.OK || !one.Whole || len(one.Checks) < 40 || one.Capabilities["range_copy"] != true || one.Requests["put"] == 0 || one.Left == nil {
		t.Errorf("%+v", one)
	}
	if strings.Contains(r.out, "\x1b") {
		t.Error("colours outside a terminal")
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Errorf("files before %v, after %v", before, after)
	}
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK, "clean")
}

// files are those under a directory, but for the catalog's own.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(dir, "bucket"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "@locks") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDoctorUnreachable(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	host := strings.TrimPrefix(away.URL, "http://")
	cli(t, "", "doctor", "--store", "standard=minio://"+host+"/bucket?tls=false").want(t, exitUnavailable)
	cli(t, "", "doctor", "--store", "standard").want(t, exitUsage, "CLASS=URL")
	// Beside a bucket that is fit, before it and after it.
	dir := t.TempDir()
	startUp(t, dir).end(t)
	fit := "file://" + filepath.Join(dir, "bucket")
	for _, stores := range [][]string{
		{"--store", "standard=minio://" + host + "/bucket?tls=false", "--store", "express=" + fit},
		{"--store", "express=" + fit, "--store", "standard=minio://" + host + "/bucket?tls=false"},
		{"--store", "express=minio://" + host + "/bucket?tls=false," + fit},
	} {
		cli(t, "", with([]string{"doctor"}, stores...)...).want(t, exitUnavailable, "connection refused", "check that the store runs", "express="+fit, "fit: all that is required holds")
	}
}

// TestK37VersionedBucket, on a real server: refused by doctor, writer, up and auditor, by
// name and with the way on, and taken with the flag.
func TestK37VersionedBucket(t *testing.T) {
	s := realstore.Own(t, realstore.KindMinio, false)
	t.Setenv("AWS_ACCESS_KEY_ID", s.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.SecretKey)
	owner, err := minio.New(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	bucket := s.NewBucket(t)
	store := "standard=minio://" + s.Endpoint + "/" + bucket + "?tls=false"
	cli(t, "", "doctor", "--store", store).want(t, exitOK, "fit: all that is required holds", "list-uploads false")
	if err := owner.EnableVersioning(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "doctor", "--store", store).want(t, exitFailed, "versioning is Enabled", "BREAKS: versioning", "NOT FIT: 1 required")
	cli(t, "", "doctor", "--store", store, "--accept-versioned").want(t, exitOK, "note:   versioning")

	dir := t.TempDir()
	tier := []string{"--dir", dir, "--store", store, "--catalog", "sqlite://" + filepath.Join(dir, "catalog.db")}
	for _, command := range []string{"up", "writer"} {
		cli(t, "", with([]string{command, "--http", "127.0.0.1:0"}, tier...)...).want(t, exitFailed,
			"versioning is Enabled", "deletes free nothing", "strandline doctor --store 'standard=minio://")
	}
	if n := objectsIn(t, owner, bucket); n != 0 {
		t.Errorf("refused starts left %d objects", n)
	}
	start(t, with(with([]string{"writer", "--accept-versioned"}, tier...))...).end(t)
	cli(t, "", with([]string{"auditor", "--once"}, tier...)...).want(t, exitFailed, "versioning is Enabled")
	cli(t, "", with([]string{"auditor", "--once", "--dry-run"}, tier...)...).want(t, exitFailed, "versioning is Enabled")
	cli(t, "", with([]string{"auditor", "--once", "--accept-versioned"}, tier...)...).want(t, exitOK, "not proven at the start", "accepted by --accept-versioned")
	cli(t, "", with([]string{"fsck"}, tier...)...).want(t, exitOK, "clean")
}

func objectsIn(t *testing.T, c *minio.Client, bucket string) (n int) {
	t.Helper()
	for o := range c.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		n++
	}
	return n
}

// forgetful overwrites on a conditional complete (K34).
type forgetful struct{ objstore.Driver }

func (f forgetful) Complete(ctx context.Context, key, id string, parts []objstore.Part, _ objstore.PutOptions) (objstore.Info, error) {
	return f.Driver.Complete(ctx, key, id, parts, objstore.PutOptions{})
}

// stuck answers no write.
type stuck struct{ objstore.Driver }

func (stuck) Put(ctx context.Context, key string, _ io.ReadSeeker, _ int64, _ objstore.PutOptions) (objstore.Info, error) {
	<-ctx.Done()
	return objstore.Info{}, &objstore.Error{Op: "put", Key: key, Kind: objstore.ErrAmbiguous, Err: ctx.Err()}
}

// modest declares less than it is asked for.
type modest struct{ objstore.Driver }

func (m modest) Capabilities() objstore.Capabilities {
	c := m.Driver.Capabilities()
	c.ConditionalComplete = false
	return c
}

// TestProving: what is proven missing refuses the start, what could not be proven in time
// is a warning, and a store that is fit keeps its capabilities.
func TestProving(t *testing.T) {
	for name, c := range map[string]struct {
		wrap          func(objstore.Driver) objstore.Driver
		refused, logs string
	}{
		"fit":    {func(d objstore.Driver) objstore.Driver { return d }, "", "the store does what is relied on"},
		"K34":    {func(d objstore.Driver) objstore.Driver { return forgetful{d} }, "complete-once", ""},
		"slow":   {func(d objstore.Driver) objstore.Driver { return stuck{d} }, "", "not proven at the start"},
		"modest": {func(d objstore.Driver) objstore.Driver { return modest{d} }, "", "the store does what is relied on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			store, err := objstore.New(c.wrap(d), objstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			var logged bytes.Buffer
			var b backendFlags
			began := time.Now()
			(&proving{}).on(&b, slog.New(slog.NewTextHandler(&logged, nil)), false)
			err = b.prove(t.Context(), objstore.Classes{"standard": {store}})
			t.Logf("took %v", time.Since(began))
			switch {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "strandline doctor --store") || exitCode(err) != exitFailed):
				t.Errorf("refused with: %v", err)
			}
			if !strings.Contains(logged.String(), c.logs) {
				t.Errorf("logged: %s", &logged)
			}
			if store.Capabilities().ConditionalComplete != (name != "modest") {
				t.Errorf("%+v", store.Capabilities())
			}
		})
	}
}

// TestProvingEnds: Ctrl-C during the start is no refusal.
func TestProvingEnds(t *testing.T) {
	d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	store, err := objstore.New(d, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b backendFlags
	(&proving{}).on(&b, slog.New(slog.DiscardHandler), false)
	if err := b.prove(ctx, objstore.Classes{"standard": {store}}); err == nil || strings.Contains(err.Error(), errUnfit.Error()) {
		t.Errorf("interrupted: %v", err)
	}
}

// What could not be tried shows nothing against a store, and nothing for it.
func TestDoctorTellsOpenFromBroken(t *testing.T) {
	said := func(outcomes ...doctor.Outcome) string {
		var out bytes.Buffer
		a := &app{streams: streams{out: &out}}
		e := examined{whole: true}
		for i, o := range outcomes {
			e.Results = append(e.Results, doctor.Result{Check: fmt.Sprintf("check-%d", i), Required: true, Outcome: o, Breaks: "all"})
		}
		a.printCannot(e)
		return out.String()
	}
	if s := said(doctor.OK, doctor.Failed); !strings.Contains(s, "OPEN:   check-1") || !strings.Contains(s, "NOT PROVEN: 1 ") || strings.Contains(s, "BREAKS") {
		t.Error(s)
	}
	if s := said(doctor.Failed, doctor.Missing); !strings.Contains(s, "BREAKS: check-1") || !strings.Contains(s, "NOT FIT: 1 ") || !strings.Contains(s, "OPEN:   check-0") {
		t.Error(s)
	}
}
