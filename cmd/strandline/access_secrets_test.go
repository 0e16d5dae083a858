//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// marker stands wherever a secret may stand, and must come out nowhere.
const marker = "hunter2-of-the-test"

// spellings are values of a flag with a secret in it: right ones that lead nowhere, and
// broken ones.
var spellings = map[string][]string{
	"catalog": {
		"postgres://me:" + marker + "@127.0.0.1:1/db?connect_timeout=1", "postgresql://127.0.0.1:1/db?user=me&password=" + marker,
		"postgres://me:" + marker + "@127.0.0.1:1,127.0.0.1:2/db?connect_timeout=1", "postgres://me:" + marker + "@:x:/db", "postgres://me:" + marker + "@[::1/db",
		"postgres://me:" + marker + "%zz@h/db", "postgres://me:" + marker + "@127.0.0.1:1/db?sslmode=never", "postgres://me:" + marker + "@127.0.0.1:1/db?sslrootcert=/dev/null/none&sslmode=verify-full",
		"host=127.0.0.1 port=1 user=me password=" + marker, "host=127.0.0.1 password='" + marker, "mysql://me:" + marker + "@h/db", "sqlite://me:" + marker + "@/dev/null/none", "me:" + marker + "@h",
	},
	"store": {
		"standard=s3://me:" + marker + "@bucket", "standard=s3://b?endpoint=http://me:" + marker + "@127.0.0.1:1", "standard=s3://b?secret=" + marker,
		"standard=minio://me:" + marker + "@127.0.0.1:1/b?tls=false", "standard=minio://127.0.0.1:1/b?password=" + marker, "standard=other://me:" + marker + "@h",
		"s3://me:" + marker + "@bucket", "standard=file://me:" + marker + "@/dev/null/none", "standard=s3://me:" + marker + "%zz@b", "standard=file:///dev/null/none,s3://me:" + marker + "@b",
	},
	"server":                 {"http://me:" + marker + "@127.0.0.1:1", "ftp://me:" + marker + "@h", "http://me:" + marker + "@[::1", "http://127.0.0.1:1/?token=" + marker, "http://me:" + marker + "%zz@h"},
	"advertise":              {"http://me:" + marker + "@127.0.0.1:1", "ftp://me:" + marker + "@h", "http://me:" + marker + "%zz@h"},
	"object-cache-instances": {"http://me:" + marker + "@127.0.0.1:1", "ftp://me:" + marker + "@h", "me:" + marker + "@h:1", "http://me:" + marker + "%zz@h:1", "h:1?token=" + marker},
	"telemetry-otlp":         {"http://me:" + marker + "@127.0.0.1:1", "ftp://me:" + marker + "@h", "grpc://me:" + marker + "%zz@h"},
}

// alsoNeeded makes a command get as far as the flag that is looked at.
var alsoNeeded = map[string][]string{
	"up": {"--http", "127.0.0.1:0"}, "writer": {"--http", "127.0.0.1:0"}, "reader": {"--http", "127.0.0.1:0"}, "auditor": {"--once"},
	"cache": {"--listen", "127.0.0.1:0", "--cache-bytes", "64MiB"},
}

// arguments of commands that need some.
var arguments = map[string][]string{
	"append": {"s"}, "cat": {"s"}, "scan": {"0"}, "rm": {"s"}, "trim": {"s", "1"}, "explain": {"seg/x"}, "inspect": {"seg/x"}, "accept-loss": {"seg/x"},
	"consumers list": {"0"}, "consumers create": {"0", "c"}, "consumers pull": {"0", "c"}, "consumers ack": {"0", "c", "1"}, "consumers rm": {"0", "c"},
	"quarantine rm": {"x"}, "salvage": {"/dev/null/none"}, "topology set": {"--shards", "2"}, "token new": {"x", "--scopes", "read"}, "token hash": {"x", "--scopes", "read"},
}

// leaves are all commands that do something, by their path.
func leaves(cmd *cobra.Command, path string, each func(path string, cmd *cobra.Command)) {
	for _, sub := range cmd.Commands() {
		name := strings.TrimSpace(path + " " + sub.Name())
		if sub.HasSubCommands() {
			leaves(sub, name, each)
			continue
		}
		each(name, sub)
	}
}

// briefly runs a command as long as it takes to fail, or to begin to wait.
func briefly(ctx context.Context, args []string) result {
	ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
	defer cancel()
	var out, errs lockedBuffer
	code := run(ctx, args, streams{in: strings.NewReader("x\n"), out: &out, err: &errs})
	return result{code, out.String(), errs.String()}
}

// TestNoCommandShowsSecrets runs every command with a secret in every flag that may hold
// one, by flag, by environment and by file, and reads all that it prints.
func TestNoCommandShowsSecrets(t *testing.T) {
	t.Chdir(t.TempDir()) // where a command without --dir begins a deployment
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"} {
		t.Setenv(name, "x="+marker)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHETEST")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv(tokenVariable, marker+marker)
	root := (&app{}).root()
	var runs [][]string
	met := map[string]int{}
	leaves(root, "", func(path string, cmd *cobra.Command) {
		if path == "help" || strings.HasPrefix(path, "bench") || path == "drive" {
			return
		}
		words := append(strings.Fields(path), arguments[path]...)
		words = append(words, alsoNeeded[path]...)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			for _, value := range spellings[f.Name] {
				met[f.Name]++
				args := append(slices.Clone(words), "--"+f.Name, value)
				if f.Name == "catalog" {
					args = append(args, "--store", "standard=file:///dev/null/none")
				}
				if f.Name == "store" && cmd.Flags().Lookup("catalog") != nil {
					args = append(args, "--catalog", "sqlite:///dev/null/none/catalog.db")
				}
				runs = append(runs, args)
			}
		})
		runs = append(runs, append(slices.Clone(words), "--token", marker), append(slices.Clone(words), "--password="+marker))
	})
	for name := range spellings {
		if met[name] == 0 {
			t.Errorf("no command has --%s any more: what has taken its place?", name)
		}
	}
	dir := t.TempDir()
	for i, text := range configsWithSecrets() {
		path := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"config"}, {"config", "--json"}, {"config", "writer"}, {"config", "--check"}, {"writer"}, {"status"}} {
			runs = append(runs, append(args, "--config", path))
		}
	}
	var g errgroup.Group
	g.SetLimit(8) // most of the time they wait
	for _, args := range runs {
		g.Go(func() error {
			r := briefly(t.Context(), append(slices.Clone(args), "--log-level", "debug"))
			if strings.Contains(r.out+r.err, marker) {
				t.Errorf("%q shows the secret:\n%s", args, r.out+r.err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs", len(runs))
}

// configsWithSecrets are settings files, sound and broken.
func configsWithSecrets() []string {
	dsn := "postgres://me:" + marker + "@127.0.0.1:1/db"
	return []string{
		"catalog: " + dsn + "\nstore: [\"standard=s3://me:" + marker + "@b\"]\n",
		"catalog: [" + dsn + "\n",
		"catalog: {password: " + marker + "}\n",
		"catalgo: " + dsn + "\n",
		"token: " + marker + "\n",
		"writer:\n  catalog: " + dsn + "\n  segment-size: much\n  shards: 0-3\n",
		"writer:\n\tcatalog: " + dsn + "\n",
	}
}

// TestEnvironmentShowsNoSecrets: the same by STRANDLINE_… variables, which config shows the source of.
func TestEnvironmentShowsNoSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	for flag, values := range spellings {
		t.Run(flag, func(t *testing.T) {
			for _, value := range values {
				t.Setenv("STRANDLINE_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), value)
				for _, args := range [][]string{{"config"}, {"config", "--json"}, {"status"}, {"append", "s"}} {
					if r := briefly(t.Context(), args); strings.Contains(r.out+r.err, marker) {
						t.Errorf("%v with %s in the environment shows it:\n%s", args, value, r.out+r.err)
					}
				}
			}
		})
	}
}

// TestServedNoSecrets reads everything that a running process answers and logs, with
// secrets all around it.
func TestServedNoSecrets(t *testing.T) {
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD"} {
		t.Setenv(name, marker)
	}
	k := newKeyring(t, "all append,read,admin")
	t.Setenv(tokenVariable, k.tokens["all"])
	dir := t.TempDir()
	up := startUp(t, dir, "--token-file", k.file, "--log-level", "debug")
	secrets := []string{marker, k.tokens["all"], strings.Fields(k.lines[0])[2][len("sha256:"):]}
	read := func(path, authorization string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, up.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", authorization)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var head bytes.Buffer
		_ = resp.Header.Write(&head) // to memory
		return head.String() + string(text)
	}
	cli(t, "one\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	var said strings.Builder
	for _, path := range []string{
		"/v1/status", "/metrics", "/v1/explain?stream=s", "/v1/shards", "/v1/openapi.json", "/v1/streams/s/rows", "/v1/streams", "/healthz", "/readyz", "/nowhere",
		"/v1/status?token=" + marker, "/v1/streams/" + strings.Repeat("x", 300) + "/rows",
	} {
		said.WriteString(read(path, "Bearer "+k.tokens["all"]))
		said.WriteString(read(path, "Bearer "+k.tokens["all"]+"x"))
		said.WriteString(read(path, "Basic bWU6"+marker))
	}
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitOK, "one")
	up.end(t)
	all := said.String() + up.errs.String()
	if !strings.Contains(all, "# TYPE") || len(all) < 4000 {
		t.Errorf("too little was said: the metrics are missing\n%.2000s", all)
	}
	for _, secret := range secrets {
		if at := strings.Index(all, secret); at >= 0 {
			t.Errorf("a secret is shown: …%s…", all[max(0, at-200):min(len(all), at+200)])
		}
	}
}
