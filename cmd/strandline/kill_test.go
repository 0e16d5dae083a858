package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/httpapi"
)

// kills is how often TestSIGKILL kills the server under load.
const kills = 50

// binaries is where the command is compiled to, once a run of the tests.
var binaries struct {
	once sync.Once
	dir  string
	err  error
}

// TestMain removes what buildBinary made.
func TestMain(m *testing.M) {
	code := m.Run()
	if binaries.dir != "" {
		if err := os.RemoveAll(binaries.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// buildBinary compiles the command, once.
func buildBinary(t *testing.T) string {
	t.Helper()
	b := &binaries
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "strandline-test"); b.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", filepath.Join(b.dir, "strandline"), ".").CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, "strandline")
}

// child is a running `strandline up`.
type child struct {
	cmd *exec.Cmd
	url string
	log *bytes.Buffer
}

func startChild(t *testing.T, binary, dir string, args ...string) *child {
	t.Helper()
	return startProcess(t, binary, append([]string{"up", "--dir", dir, "--http", "127.0.0.1:0"}, args...)...)
}

// startProcess starts a command that serves until it is ended.
func startProcess(t *testing.T, binary string, args ...string) *child {
	t.Helper()
	c := &child{log: &bytes.Buffer{}}
	c.cmd = exec.Command(binary, args...)
	c.cmd.Stderr = c.log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.kill() }) // its end is what was asked for
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v, %v\n%s", args[0], err, c.cmd.Wait(), c.log)
	}
	c.url = strings.Fields(line)[2]
	return c
}

// end sends a signal and waits; a child that ended already is left.
func (c *child) end(sig syscall.Signal) error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return err
	}
	return c.cmd.Wait()
}

func (c *child) kill() error { return c.end(syscall.SIGKILL) }

// sender appends numbered rows to one stream and remembers which were acknowledged.
type sender struct {
	stream string
	next   int
	acked  map[int]uint64 // number -> seq
}

// run posts small batches until the server is gone.
func (s *sender) run(ctx context.Context, base string) {
	for ctx.Err() == nil {
		n := 1 + rand.IntN(20)
		var body bytes.Buffer
		for i := range n {
			fmt.Fprintf(&body, "%s-%08d-%s\n", s.stream, s.next+i, strings.Repeat("x", rand.IntN(300)))
		}
		first, err := postRows(ctx, base, s.stream, body.Bytes())
		if err == nil {
			for i := range n {
				s.acked[s.next+i] = first + uint64(i)
			}
		}
		s.next += n // a row is sent once, acknowledged or not
		if err != nil {
			return
		}
	}
}

func postRows(ctx context.Context, base, stream string, body []byte) (first uint64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/streams/"+url.PathEscape(stream)+"/rows", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", resp.Status, answer)
	}
	var got httpapi.Appended
	return uint64(got.First), json.Unmarshal(answer, &got)
}

// TestSIGKILL kills `up` at random moments under load, again and again on one
// directory: every acknowledged row is there after each restart's end, in order, once.
func TestSIGKILL(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	dir := t.TempDir()
	senders := make([]*sender, 6)
	for i := range senders {
		senders[i] = &sender{stream: "kill/" + strconv.Itoa(i), acked: map[int]uint64{}}
	}
	for range kills {
		c := startChild(t, binary, dir, "--segment-age", "1s", "--shards", "2", "--log-level", "error")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, s := range senders {
			wg.Go(func() { s.run(ctx, c.url) })
		}
		// The moment of the kill is the point of the test: any is right.
		timer := time.NewTimer(time.Duration(20+rand.IntN(500)) * time.Millisecond)
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		_ = c.end(syscall.SIGKILL) // "signal: killed" is what was asked for
		cancel()
		wg.Wait()
	}
	c := startChild(t, binary, dir, "--segment-age", "1s")
	total := 0
	for _, s := range senders {
		total += len(s.acked)
		rows := readRows(t, c.url, s.stream)
		checkSent(t, s, rows)
	}
	if err := c.end(syscall.SIGTERM); err != nil {
		t.Fatalf("up did not stop cleanly: %v\n%s", err, c.log)
	}
	for _, s := range senders { // the same rows, cold
		checkSent(t, s, catRows(t, binary, dir, s.stream))
	}
	if total < kills {
		t.Fatalf("only %d rows were acknowledged in %d runs: the load did not run", total, kills)
	}
	t.Logf("%d kills, %d rows acknowledged", kills, total)
	out, err := exec.Command(binary, "fsck", "--dir", dir, "--json").Output()
	if err != nil {
		t.Fatalf("fsck: %v\n%s", err, out)
	}
}

// row is what a read shows of a row.
type row struct {
	Seq     uint64
	Payload string
}

func readRows(t *testing.T, base, stream string) []row {
	t.Helper()
	resp, err := http.Get(base + "/v1/streams/" + url.PathEscape(stream) + "/rows")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return decodeRows(t, resp.Body)
}

func catRows(t *testing.T, binary, dir, stream string) []row {
	t.Helper()
	out, err := exec.Command(binary, "cat", stream, "--dir", dir, "--ndjson").Output()
	if err != nil {
		t.Fatalf("cat %s: %v", stream, err)
	}
	return decodeRows(t, bytes.NewReader(out))
}

func decodeRows(t *testing.T, r io.Reader) []row {
	t.Helper()
	var rows []row
	d := json.NewDecoder(r)
	for {
		var line struct {
			row
			Error json.RawMessage
		}
		err := d.Decode(&line)
		if err == io.EOF {
			return rows
		}
		if err != nil || line.Error != nil {
			t.Fatalf("after %d rows: %v %s", len(rows), err, line.Error)
		}
		rows = append(rows, line.row)
	}
}

// checkSent holds what was read against what was sent: numbers rise (so order is
// kept and no row is there twice), and every acknowledged one is there at its seq.
func checkSent(t *testing.T, s *sender, rows []row) {
	t.Helper()
	last, seq := -1, uint64(0)
	found := 0
	for _, r := range rows {
		parts := strings.SplitN(strings.TrimPrefix(r.Payload, s.stream+"-"), "-", 2)
		n, err := strconv.Atoi(parts[0])
		if err != nil {
			t.Fatalf("%s: strange row %q", s.stream, r.Payload)
		}
		if n <= last || r.Seq <= seq {
			t.Fatalf("%s: row %d at seq %d after row %d at seq %d", s.stream, n, r.Seq, last, seq)
		}
		last, seq = n, r.Seq
		if want, ok := s.acked[n]; ok {
			if want != r.Seq {
				t.Fatalf("%s: row %d was acknowledged at seq %d and stands at %d", s.stream, n, want, r.Seq)
			}
			found++
		}
	}
	if found != len(s.acked) {
		t.Fatalf("%s: %d of %d acknowledged rows are there", s.stream, found, len(s.acked))
	}
}
