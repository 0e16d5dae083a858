package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// shared are the flags of a catalog and a bucket that writers share.
func shared(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	return []string{"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--store", "standard=file://" + filepath.Join(dir, "bucket")}
}

// with joins arguments into one command line.
func with(args []string, more ...string) []string { return append(slices.Clone(args), more...) }

// startWriter runs a writer on a disk of its own.
func startWriter(t *testing.T, tier []string, disk string, args ...string) *running {
	t.Helper()
	return start(t, with(with([]string{"writer", "--dir", disk}, tier...), args...)...)
}

// streamsOf are names of streams that belong to a shard, of so many.
func streamOf(shards uint32, s segment.Shard) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("stream-%d", i); segment.ShardOf(name, shards) == s {
			return name
		}
	}
}

func TestShardSelections(t *testing.T) {
	for text, want := range map[string][]segment.Shard{
		"": nil, "0": {0}, "0-3,7": {0, 1, 2, 3, 7}, "7,0-1,1": {0, 1, 7},
	} {
		if got, err := parseShards(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "1-", "-1", "3-1", "1,,2", "1 2", "65536", "0-99999999999", "0-65536", "+1-2-3"} {
		if got, err := parseShards(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	top := catalog.Topology{Epoch: 1, Shards: 5}
	for index, want := range [][]segment.Shard{{0, 2, 4}, {1, 3}} {
		w := writerFlags{index: uint32(index), count: 2}
		if got, err := w.pick(top); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d of 2: %v, %v", index, got, err)
		}
	}
	for _, w := range []writerFlags{{index: 5, count: 9}, {shards: "0-5"}} {
		if got, err := w.pick(top); exitCode(err) != exitUsage {
			t.Errorf("%+v: %v, %v", w, got, err)
		}
	}
}

func TestWriterUsage(t *testing.T) {
	tier := shared(t)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args  []string
		texts []string
	}{
		"all faults":   {[]string{"--shards", "x", "--shard-index", "3", "--segment-age", "1ms", "--http", "0.0.0.0:1", "--advertise", "here"}, []string{"--shards", "not both", "come together", "age", "loopback", "--advertise"}},
		"index":        {[]string{"--shard-index", "2", "--shard-count", "2"}, []string{"below the count"}},
		"too high":     {[]string{"--shards", "9"}, []string{"0 to 3"}},
		"no share":     {[]string{"--shard-index", "7", "--shard-count", "8"}, []string{"none of the 4 shards"}},
		"no directory": {nil, []string{"--dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := with(tier, c.args...)
			if name != "no directory" {
				args = with(args, "--dir", dir)
			}
			cli(t, "", with([]string{"writer"}, args...)...).want(t, exitUsage, c.texts...)
		})
	}
}

// TestWritersShare: each takes its own shards, sends clients to the other for the rest, and on
// SIGTERM leaves nothing unpublished.
func TestWritersShare(t *testing.T) {
	tier := shared(t)
	disks := []string{t.TempDir(), t.TempDir()}
	a := startWriter(t, tier, disks[0], "--shards", "0-1")
	b := startWriter(t, tier, disks[1], "--shards", "2,3")
	for s := range segment.Shard(4) {
		mine, other := a, b
		if s >= 2 {
			mine, other = b, a
		}
		name := streamOf(4, s)
		cli(t, "one\ntwo\n", "append", name, "--server", mine.url).want(t, exitOK, "2 rows")
		cli(t, "three\n", "append", name, "--server", other.url).want(t, exitOK, "1 row,")
		cli(t, "", "consumers", "create", fmt.Sprint(s), "c", "--server", other.url).want(t, exitOK, "created")
		cli(t, "", with([]string{"consumers", "create", fmt.Sprint(s), "c"}, tier...)...).want(t, exitOK, "stood before, cursor 0")
	}
	st := cli(t, "", with([]string{"status"}, tier...)...)
	st.want(t, exitOK, "WRITER OF", "serving", "CONSUMER", "WATERMARK", "GIVES UP")
	logs := cli(t, "", with([]string{"status", "--json"}, tier...)...)
	if logs.code != exitOK || strings.Count(logs.out, `"rows_total": 3,`) != 4 {
		t.Errorf("each of four logs took three rows: %+v", logs)
	}
	a.end(t)
	b.end(t)
	for s := range segment.Shard(4) {
		r := cli(t, "", with([]string{"cat", streamOf(4, s)}, tier...)...)
		if r.want(t, exitOK); r.out != "one\ntwo\nthree\n" {
			t.Errorf("shard %d: %q", s, r.out)
		}
		r = cli(t, "", with([]string{"scan", fmt.Sprint(s)}, tier...)...)
		if want := streamOf(4, s) + "\tone\n" + streamOf(4, s) + "\ttwo\n" + streamOf(4, s) + "\tthree\n"; r.code != exitOK || r.out != want {
			t.Errorf("scan %d: %+v", s, r)
		}
	}
	cli(t, "", with([]string{"consumers", "ls", "0"}, tier...)...).want(t, exitUnavailable, "nobody serves shard 0")
	cli(t, "", with([]string{"fsck"}, tier...)...).want(t, exitOK, "clean")
}

// TestSecondOwnerIsRefused: a shard that is served is held; --steal takes it.
func TestSecondOwnerIsRefused(t *testing.T) {
	tier := shared(t)
	a := startWriter(t, tier, t.TempDir())
	cli(t, "", with([]string{"writer", "--dir", t.TempDir(), "--shards", "1", "--http", "127.0.0.1:0"}, tier...)...).
		want(t, exitFenced, "--steal")
	cli(t, "x\n", "append", streamOf(4, 1), "--server", a.url).want(t, exitOK)
}

// TestRFC0008_10_ListenerOpensAfterRecovery: until recovery is complete, who connects is
// refused; the first who is let in finds all that was acknowledged.
func TestRFC0008_10_ListenerOpensAfterRecovery(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir, "--shards", "1")
	cli(t, "kept\n", "append", "s", "--server", first.url).want(t, exitOK)
	first.end(t)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &app{streams: streams{in: strings.NewReader(""), out: &signalling{}, err: &bytes.Buffer{}}, logLevel: "error"}
	out := a.out.(*signalling)
	out.wrote = make(chan string, 1)
	log, err := a.logger()
	if err != nil {
		t.Fatal(err)
	}
	o := &ownerFlags{listen: listenFlags{http: "127.0.0.1:0", shutdown: drainTime}, backend: backendFlags{dir: dir}}
	tr, err := o.backend.open(ctx, modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	top, err := foundEpoch(ctx, tr, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{app: a, flags: o, tier: tr, log: log, shards: allShards}
	refused := 0
	knock := func(address string) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // it must not have been there at all
			t.Error("somebody was let in before recovery was over")
			return
		}
		refused++
	}
	s.open = func(ctx context.Context, top catalog.Topology, address string) (*localtier.Writer, error) {
		knock(address)
		w, err := s.openWriter(ctx, top, address)
		knock(address)
		return w, err
	}
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, top) }()
	url := strings.Fields(<-out.wrote)[2]
	rows := readRows(t, url, "s")
	if len(rows) != 1 || rows[0].Payload != "kept" || refused != 2 {
		t.Errorf("%v, %d refused", rows, refused)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// signalling passes on what is printed.
type signalling struct{ wrote chan string }

func (s *signalling) Write(p []byte) (int, error) {
	s.wrote <- string(p)
	return len(p), nil
}

// TestTokensAndProducers: a result's token reads on from there, one of a history that
// was left is refused with the place, and a retry by number is answered as the first was.
func TestTokensAndProducers(t *testing.T) {
	tier := shared(t)
	disk := t.TempDir()
	w := startWriter(t, tier, disk)
	name := streamOf(4, 0)
	appendJSON := func(in string, args ...string) (got appended) {
		t.Helper()
		r := cli(t, in, with([]string{"append", name, "--server", w.url, "--json"}, args...)...)
		if r.want(t, exitOK); json.Unmarshal([]byte(r.out), &got) != nil {
			t.Fatal(r.out)
		}
		return got
	}
	first := appendJSON("a\nb\n", "--ack", "shared", "--producer", "p", "--sequence", "1")
	if again := appendJSON("a\nb\n", "--producer", "p", "--sequence", "1"); again.First != first.First || again.Last != first.Last {
		t.Errorf("%+v, then %+v", first, again)
	}
	second := appendJSON("c\n", "--ack", "shared", "--producer", "p", "--sequence", "2")
	cli(t, "x\n", "append", name, "--server", w.url, "--producer", "p", "--sequence", "1").want(t, exitFailed, "sequence", "go on with 3", "per shard")
	cli(t, "x\n", "append", name, "--server", w.url, "--producer", "p", "--sequence", "9").want(t, exitFailed, "from 3 on", "per shard")
	if want := fmt.Sprintf("e1.t%d.%d", first.Term, first.Last); first.LastToken != want {
		t.Errorf("token %s, want %s", first.LastToken, want)
	}
	r := cli(t, "", with([]string{"cat", name, "--from", first.LastToken}, tier...)...)
	if r.want(t, exitOK); r.out != "b\nc\n" {
		t.Errorf("%q", r.out)
	}
	r = cli(t, "", with([]string{"scan", "0", "--from", second.LastToken, "--json"}, tier...)...)
	if r.want(t, exitOK, `"payload":"c"`); strings.Count(r.out, "\n") != 1 {
		t.Errorf("%q", r.out)
	}
	w.end(t)
	// Another disk takes the shard: from its first slot on, what the old term had beyond is no history.
	w = startWriter(t, tier, t.TempDir())
	appendJSON("d\n", "--ack", "shared")
	beyond := segment.Token{Epoch: 1, Term: first.Term, Seq: second.Last + 5}.String()
	cli(t, "", with([]string{"cat", name, "--from", beyond}, tier...)...).want(t, exitFailed, "forked", fmt.Sprint("from seq ", second.Last+1))
	cli(t, "", with([]string{"scan", "0", "--from", beyond}, tier...)...).want(t, exitFailed, "forked")
	cli(t, "", with([]string{"trim", name, beyond}, tier...)...).want(t, exitFailed, "forked")
	r = cli(t, "", with([]string{"cat", name, "--from", second.LastToken}, tier...)...)
	if r.want(t, exitOK); r.out != "c\nd\n" {
		t.Errorf("%q", r.out)
	}
}

// TestConsumersCLI is a consumer's life on the command line.
func TestConsumersCLI(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	cli(t, "a\nb\nc\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	cli(t, "d\n", "append", "t", "--server", up.url).want(t, exitOK)
	d := []string{"--dir", dir}
	cons := func(args ...string) result {
		t.Helper()
		return cli(t, "", with(with([]string{"consumers"}, args...), d...)...)
	}
	cons("create", "0", "late", "--after", "3").want(t, exitOK, "created, cursor 3", "1 row behind")
	cons("create", "0", "late", "--after", "1").want(t, exitOK, "stood before", "stays", "cursor 3")
	cons("create", "0", "late", "--json").want(t, exitOK, `"stood": true`)
	cons("create", "0", "eager", "--after", "99").want(t, exitOK, "clamped to the shard's last row", "--after 99", "cursor 4")
	cons("rm", "0", "eager").want(t, exitOK)
	cons("create", "0", "eager", "--after", "99", "--json").want(t, exitOK, `"cursor": 4`, `"clamped": true`)
	cons("rm", "0", "eager").want(t, exitOK)
	r := cons("pull", "0", "proj", "--limit", "3")
	if r.want(t, exitOK); strings.Count(r.out, "\n") != 3 || !strings.Contains(r.out, "\ts\ta\n") {
		t.Fatalf("%q", r.out)
	}
	tok := strings.Fields(strings.Split(r.out, "\n")[1])[0]
	cons("ack", "0", "proj", tok).want(t, exitOK, "cursor 2", "2 rows behind")
	cons("ack", "0", "proj", "1").want(t, exitOK, "cursor 2")
	cons("ack", "0", "proj", "3", "--json").want(t, exitOK, `"cursor": 3`)
	cons("ack", "0", "proj", "99").want(t, exitUsage, "last row is 4")
	cons("ack", "0", "nobody", "1").want(t, exitFailed, "no-such-consumer")
	if r := cons("pull", "0", "proj", "--json"); r.code != exitOK || !strings.Contains(r.out, `"stream":"t"`) || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	cons("ls", "0").want(t, exitOK, "proj", "late")
	cons("ls", "7").want(t, exitUsage, "0 to 0")
	cons("rm", "0", "late").want(t, exitOK, "removed")
	if r := cons("rm", "0", "late"); r.code != exitFailed || !strings.Contains(r.err, `none of the name "late"`) || !strings.Contains(r.err, "strandline consumers ls 0") || strings.Contains(r.err, "create") {
		t.Errorf("%+v", r)
	}
	if r := cons("ls", "0", "--json"); !strings.Contains(r.out, `"name": "proj"`) || strings.Contains(r.out, "late") {
		t.Errorf("%+v", r)
	}
	cli(t, "", "status", "--dir", dir).want(t, exitOK, "proj")
	up.end(t)
	// A disk later the cursor is where it was.
	if err := os.RemoveAll(filepath.Join(dir, writerDir)); err != nil {
		t.Fatal(err)
	}
	startUp(t, dir)
	cons("ls", "0", "--json").want(t, exitOK, `"cursor": 3`)
	cons("pull", "0", "proj").want(t, exitOK, "\tt\td\n")
}

func TestDriveCLI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	for _, name := range []string{"recovery", "affinity", "shared", "gc"} {
		cli(t, "", "drive", name, "--dir", dir).want(t, exitOK, "CLAIM", "drive "+name+" holds")
		r := cli(t, "", "drive", name, "--dir", dir, "--json")
		var out struct {
			Holds  bool
			Report map[string]any
		}
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != exitOK || !out.Holds || out.Report["divergence"] != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	cli(t, "", "drive", "gc", "--dir", dir, "--min-retained-segments", "1000").want(t, exitFailed, "does not hold", "--segment-bytes")
	cli(t, "", "drive", "gc", "--dir", dir, "--events", "3", "--segment-bytes", "1B", "--min-retained-segments", "0", "--consumer", "").
		want(t, exitUsage, "--events", "--segment-bytes", "--min-retained-segments", "--consumer")
	cli(t, "", "drive", "recovery", "--dir", t.TempDir(), "--shards", "2").want(t, exitUsage, "--shards")
	cli(t, "", "drive", "gc", "--dir", dir, "--segment-bytes", "100000").want(t, exitUsage, "--segment-bytes 100000", "or less", "or --events")
	stopped := cli(t, "", "drive", "gc", "--dir", dir, "--min-retained-segments", "1000")
	if stopped.want(t, exitFailed, "not judged", "not finished"); strings.Contains(stopped.out, "no: ") {
		t.Errorf("claims are denied that were never judged: %s", stopped.out)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "drive", "shared", "--dir", foreign).want(t, exitUsage, "mine")
}
