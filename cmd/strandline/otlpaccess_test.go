package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/strandline/strandline/segment"
)

// TestOTLPAccess: logs need a token with the scope append, over HTTP and gRPC; a writer
// that passes them on to another presents its own.
func TestOTLPAccess(t *testing.T) {
	dir := t.TempDir()
	token := func(name, scopes string) (text, entry string) {
		r := cli(t, "", "token", "new", name, "--scopes", scopes)
		r.want(t, exitOK)
		text, entry, _ = strings.Cut(strings.TrimSpace(r.out), "\n")
		return text, entry
	}
	sender, one := token("sender", "append")
	reader, two := token("reader", "read")
	peer, three := token("peer", "append")
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tokens, from := put("tokens", strings.Join([]string{one, two, three}, "\n")), put("peer", peer)
	tier, port := shared(t), freeAddress(t)
	a := startWriter(t, tier, filepath.Join(dir, "a"), "--shards", "0-1", "--token-file", tokens, "--token-from", from, "--otlp-grpc", port)
	startWriter(t, tier, filepath.Join(dir, "b"), "--shards", "2-3", "--token-file", tokens)

	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", streamOf(4, segment.Shard(3))) // the other writer's
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetTimestamp(1)
	if resp := postLogs(t, a.url, logs); resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("HTTP without a token: %s, %v", resp.Status, resp.Header)
	}
	conn, err := grpc.NewClient(port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for token, want := range map[string]grpccodes.Code{"": grpccodes.Unauthenticated, "x": grpccodes.Unauthenticated, reader: grpccodes.PermissionDenied, sender: grpccodes.OK} {
		ctx := context.Background()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		_, err := plogotlp.NewGRPCClient(conn).Export(ctx, plogotlp.NewExportRequestFromLogs(logs))
		if status.Code(err) != want {
			t.Errorf("gRPC: %v, want %v", err, want)
		}
	}
	if h, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health without a token: %v, %v", h, err)
	}
}
