//go:build unix

package realstore

import (
	"context"
	"os"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestRestart: data written before a kill is there after a restart on the same port.
func TestRestart(t *testing.T) {
	for _, kind := range []Kind{KindMinio, KindVersitygw} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := Own(t, kind, true)
			bucket := s.NewBucket(t)
			url := s.URL
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.CreateBucket(ctx, "t-while-down"); err == nil {
				t.Fatal("a killed server answers")
			}
			if err := s.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			transport, err := s.transport()
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			client, err := minio.New(s.Endpoint, &minio.Options{
				Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Secure: true, Transport: transport, Region: "us-east-1",
			})
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := client.BucketExists(ctx, bucket); err != nil || !ok || s.URL != url {
				t.Fatalf("bucket after restart at %s: %v %v", s.URL, ok, err)
			}
		})
	}
}

// TestBuildOnce: a second call finds the binary, and unknown names are refused.
func TestBuildOnce(t *testing.T) {
	ctx := context.Background()
	first, err := Build(ctx, "versitygw")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Build(ctx, "versitygw")
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(second)
	if err != nil || first != second || !after.ModTime().Equal(before.ModTime()) {
		t.Fatalf("built twice: %s %s %v", first, second, err)
	}
	if _, err := Build(ctx, "nothing"); err == nil {
		t.Fatal("a tool that is not pinned was built")
	}
}

// TestStartFails: a server that cannot run is an error with its log, not a wait.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/data", []byte("a file where the data folder should be"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Start(context.Background(), KindVersitygw, dir); err == nil {
		t.Fatal("started", s.Stop())
	}
}
