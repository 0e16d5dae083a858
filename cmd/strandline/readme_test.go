package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// blocks are the shell snippets of a section of the README.
func blocks(t *testing.T, section string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", section)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	var out [][]string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(body, -1) {
		out = append(out, strings.Split(strings.TrimSpace(m[1]), "\n"))
	}
	return out
}

// freeAddress is a loopback address that nobody has.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestREADMEManyWriters runs the snippets as they stand, but for the ports.
func TestREADMEManyWriters(t *testing.T) {
	snippets := blocks(t, "Many writers on one machine")
	if len(snippets) != 2 {
		t.Fatalf("%d snippets", len(snippets))
	}
	binary := buildBinary(t)
	dir := t.TempDir()
	t.Chdir(dir)
	words := strings.NewReplacer(
		"go run ./cmd/strandline", binary, "127.0.0.1:8421", freeAddress(t), "127.0.0.1:8422", freeAddress(t), "$PWD", dir,
	)
	var servers []*child
	for _, line := range snippets[0] {
		line = words.Replace(line)
		switch command, background := strings.CutSuffix(line, " &"); {
		case strings.HasPrefix(line, "export "):
			for _, m := range regexp.MustCompile(`(STRANDLINE_\w+)="([^"]*)"`).FindAllStringSubmatch(line, -1) {
				t.Setenv(m[1], m[2])
			}
		case background && strings.Contains(line, " writer "):
			args := strings.Fields(command)
			servers = append(servers, startProcess(t, args[0], args[1:]...))
		case background:
			args := strings.Fields(command)
			cmd := exec.Command(args[0], args[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v", command, err)
				}
			})
		default:
			shell(t, line)
		}
	}
	if len(servers) != 2 {
		t.Fatalf("%d writers were started", len(servers))
	}
	var said strings.Builder
	for _, line := range snippets[1] {
		said.WriteString(shell(t, words.Replace(line)))
	}
	for _, want := range []string{"greetings: 1 row,", "\tgreetings\thello", "cursor 1", "older than 24h", "00000002.00000007"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, &said)
		}
	}
	for _, c := range servers {
		if err := c.end(syscall.SIGTERM); err != nil {
			t.Errorf("it did not stop cleanly: %v\n%s", err, c.log)
		}
	}
}

// TestREADMEYourBucket runs the snippets beside the deployment of the quick start.
func TestREADMEYourBucket(t *testing.T) {
	snippets := blocks(t, "Your bucket")
	if len(snippets) != 2 || len(snippets[1]) != 2 {
		t.Fatalf("%q", snippets)
	}
	binary := buildBinary(t)
	t.Chdir(t.TempDir())
	up := startProcess(t, binary, "up", "--http", freeAddress(t))
	shell(t, "echo hello | "+binary+" append greetings --ack shared --server "+up.url)
	words := strings.NewReplacer("go run ./cmd/strandline", binary, "127.0.0.1:8091", freeAddress(t))
	if said := shell(t, words.Replace(snippets[0][0])); !strings.Contains(said, "fit") {
		t.Errorf("the doctor says:\n%s", said)
	}
	background, isServer := strings.CutSuffix(words.Replace(snippets[1][0]), " &")
	if !isServer {
		t.Fatalf("%q does not run in the background", background)
	}
	cache := startProcess(t, "bash", "-c", "exec "+background)
	if said := shell(t, words.Replace(snippets[1][1])); said != "hello\n" {
		t.Errorf("through the cache: %q", said)
	}
	resp, err := http.Get(cache.url + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(said), `"misses":1,`) {
		t.Errorf("the cache was not asked: %s (%v)", said, err)
	}
	for _, c := range []*child{cache, up} {
		if err := c.end(syscall.SIGTERM); err != nil {
			t.Errorf("it did not stop cleanly: %v\n%s", err, c.log)
		}
	}
}

// shell runs one line of a snippet.
func shell(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
