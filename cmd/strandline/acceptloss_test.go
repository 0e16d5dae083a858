package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/segment"
)

// bucketOf opens a deployment's directory bucket, as a test's own hands.
func bucketOf(t *testing.T, dir string) *objstore.Store {
	t.Helper()
	driver, err := fsstore.Open(filepath.Join(dir, "bucket"), fsstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := objstore.New(driver, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// keysUnder are the keys of a bucket under a prefix, in order.
func keysUnder(t *testing.T, s *objstore.Store, prefix string) (keys []string) {
	t.Helper()
	for info, err := range s.ListSorted(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// objectFile is where a directory bucket has an object whose key is lower case.
func objectFile(dir, key string) string {
	return filepath.Join(dir, "bucket", filepath.FromSlash(key)+"@")
}

// fsckOf is the report of an fsck that ended so.
func fsckOf(t *testing.T, dir string, code int) (r check.Report) {
	t.Helper()
	got := cli(t, "", "fsck", "--dir", dir, "--json")
	got.want(t, code)
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	return r
}

// threeSlots is a stopped deployment of one shard, with three slots of the streams s and t.
func threeSlots(t *testing.T) (dir string, slots []string) {
	t.Helper()
	dir = t.TempDir()
	up := startUp(t, dir, "--shards", "1", "--settle-age", "24h")
	for i := range 3 {
		for _, stream := range []string{"s", "t"} {
			cli(t, fmt.Sprintf("%s-%d-a\n%s-%d-b\n", stream, i, stream, i), "append", stream, "--server", up.url, "--ack", "shared").want(t, exitOK)
		}
	}
	up.end(t)
	for _, key := range keysUnder(t, bucketOf(t, dir), "seg/") {
		if holds(t, dir, key, "s") {
			slots = append(slots, key)
		}
	}
	if len(slots) != 3 {
		t.Fatalf("slots with rows of s: %v", slots)
	}
	return dir, slots
}

// holds says whether a ref of the stream names the key.
func holds(t *testing.T, dir, key, stream string) bool {
	t.Helper()
	db := openCatalog(t, dir)
	refs, err := db.Liveness(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(refs, func(l catalog.LiveRef) bool { return l.Stream == stream })
}

func openCatalog(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "catalog.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// auditOnce lets every duty run dry that is due within the linger.
func auditOnce(t *testing.T, dir string) result {
	t.Helper()
	return cli(t, "", "auditor", "--once", "--dir", dir, "--auditor-read-grace", "1s", "--auditor-orphan-grace", "10s", "--settle-age", "0s", "--linger", "6s")
}

// TestAcceptLoss: a slot is gone for good. Until a person says so reading stops there and
// its chain owes; then the rest is read and settled, and the chain dries out.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	dir, slots := threeSlots(t)
	lose := func(args ...string) result {
		t.Helper()
		return cli(t, "", append([]string{"accept-loss", "--dir", dir}, args...)...)
	}
	lose(slots[1], "s", "--yes").want(t, exitFailed, "not lost", "stand whole")
	bucket := filepath.Join(dir, "bucket")
	if err := os.Remove(objectFile(dir, slots[1])); err != nil {
		t.Fatal(err)
	}
	before := cli(t, "", "cat", "s", "--dir", dir)
	before.want(t, exitDamage, "s-0-b")
	// A bucket that is away has lost nothing.
	if err := os.Rename(bucket, bucket+"-away"); err != nil {
		t.Fatal(err)
	}
	if r := lose(slots[1], "s", "--yes"); r.code == exitOK || r.code == exitUsage {
		t.Fatalf("given up without a bucket: %+v", r)
	}
	if err := os.Rename(bucket+"-away", bucket); err != nil {
		t.Fatal(err)
	}
	lose(slots[1], "s").want(t, exitUsage, "not in the bucket", "2 rows would be given up", "--yes")
	lose(slots[1], "s", "--yes", "--dry-run").want(t, exitOK, "2 rows would be given up")
	lose(slots[1], "u", "--yes").want(t, exitFailed, "no ref of stream \"u\"")
	lose(slots[1], "--yes").want(t, exitFailed, "name the stream")
	lose(slots[1], "", "--yes").want(t, exitUsage, "empty")
	if r := fsckOf(t, dir, exitDamage); r.LostTotal != 0 || r.DamageTotal == 0 {
		t.Fatalf("%+v", r)
	}

	got := lose(slots[1], "s", "--yes", "--json")
	got.want(t, exitOK)
	var out struct {
		check.Loss
		Accepted bool `json:"accepted"`
	}
	if err := json.Unmarshal([]byte(got.out), &out); err != nil || !out.Accepted || out.Rows != 2 || len(out.Spans) != 1 || out.Key != slots[1] {
		t.Fatalf("%v: %+v", err, out)
	}
	lose(slots[1], "s", "--yes").want(t, exitFailed, "given up before")
	cat := cli(t, "", "cat", "s", "--dir", dir)
	cat.want(t, exitDamage, "accepted as lost")
	if cat.out != before.out {
		t.Errorf("rows before the loss: %q, they were %q", cat.out, before.out)
	}
	behind := fmt.Sprintf("1.%d", out.Spans[0].Last+1)
	if !strings.Contains(cat.err, "read from "+behind+" on") {
		t.Errorf("it does not say where to go on: %s", cat.err)
	}
	rest := cli(t, "", "cat", "s", "--dir", dir, "--from", behind)
	if rest.want(t, exitOK, "s-2-a", "s-2-b"); strings.Contains(rest.out, "s-1") {
		t.Errorf("%q", rest.out)
	}
	cli(t, "", "cat", "t", "--dir", dir).want(t, exitOK, "t-0-a", "t-2-b")
	var told check.Report // of the slot that is gone it says so until the next settle
	if r := cli(t, "", "fsck", "--dir", dir, "--json"); json.Unmarshal([]byte(r.out), &told) != nil || told.LostTotal != 1 || told.DamageTotal != 0 || told.Lost[0].First != out.Spans[0].First {
		t.Fatalf("%+v", r)
	}

	// Settle goes on around it, and the slots go (I5).
	auditOnce(t, dir).want(t, exitOK)
	if left := keysUnder(t, bucketOf(t, dir), "seg/"); len(left) != 0 {
		t.Errorf("slots that stand: %v", left)
	}
	if r := fsckOf(t, dir, exitOK); r.LostTotal != 1 || r.Waiting != 0 || r.Verdict != check.Clean {
		t.Fatalf("%+v", r)
	}
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitDamage, "s-0-b", "accepted as lost")
	cli(t, "", "cat", "s", "--dir", dir, "--from", behind).want(t, exitOK, "s-2-b")

	// A trim through it makes the stream whole again, of what is left.
	cli(t, "", "trim", "s", behind, "--dir", dir).want(t, exitOK, "trimmed")
	auditOnce(t, dir).want(t, exitOK)
	cli(t, "", "cat", "s", "--dir", dir).want(t, exitOK, "s-2-a")
	if r := fsckOf(t, dir, exitOK); r.LostTotal != 0 || r.Verdict != check.Clean {
		t.Fatalf("%+v", r)
	}
}

// TestAcceptLossVoid: a slot that was absorbed as void keeps its chain from being trimmed,
// until a person says that what is in it may go.
func TestAcceptLossVoid(t *testing.T) {
	t.Parallel()
	dir, slots := threeSlots(t)
	db := openCatalog(t, dir)
	rows, err := db.Chains(t.Context())
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	key := segment.SlotKey(rows[0].Chain, rows[0].AbsorbedEnd)
	if _, err := bucketOf(t, dir).PutOnce(t.Context(), key, []byte("no slot"), nil); err != nil {
		t.Fatal(err)
	}
	_, err = db.AbsorbSlot(t.Context(), catalog.Absorb{
		Slot: catalog.SlotRow{Chain: rows[0].Chain, ID: rows[0].AbsorbedEnd, UUID: segment.UUID{1}, Bytes: 7},
		Key:  key, Class: segment.ClassStandard, Void: true, Reason: "its tail is none",
	})
	if err != nil {
		t.Fatal(err)
	}
	lose := func(args ...string) result {
		t.Helper()
		return cli(t, "", append([]string{"accept-loss", "--dir", dir}, args...)...)
	}
	auditOnce(t, dir)
	if left := keysUnder(t, bucketOf(t, dir), "seg/"); !slices.Equal(left, []string{key}) {
		t.Fatalf("slots that stand: %v", left)
	}
	lose(key, "s", "--yes").want(t, exitFailed, "no ref of stream")
	lose(slots[0], "--yes").want(t, exitFailed, "name the stream")
	lose(key).want(t, exitUsage, "its tail is none", "what it holds is not known", "--yes")
	auditOnce(t, dir)
	if _, err := os.Stat(objectFile(dir, key)); err != nil {
		t.Fatal("it went without a word", err)
	}
	lose(key, "--yes").want(t, exitOK, "are given up")
	lose(key, "--yes").want(t, exitFailed, "no void slot")
	auditOnce(t, dir).want(t, exitOK)
	if left := keysUnder(t, bucketOf(t, dir), "seg/"); len(left) != 0 {
		t.Fatalf("slots that stand: %v", left)
	}
	if r := fsckOf(t, dir, exitOK); r.Verdict != check.Clean {
		t.Fatalf("%+v", r)
	}
}

// TestAcceptLossSound: what lies beside the damage can be copied first, by the commands
// that are printed, and goes only on a second word.
func TestAcceptLossSound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1", "--settle-age", "24h", "--segment-size", "32MiB")
	var lines strings.Builder
	const all = 28
	for i := range all { // rows that hardly compress, for more than two chunks
		fmt.Fprintf(&lines, "%02d-%s\n", i, noise(1<<20))
	}
	cli(t, lines.String(), "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	auditOnce(t, dir).want(t, exitOK)
	bucket := bucketOf(t, dir)
	keys := keysUnder(t, bucket, "obj/")
	if len(keys) != 1 {
		t.Fatalf("stream objects: %v", keys)
	}
	f, err := segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := bucket.ReadSuffix(t.Context(), keys[0], n)
		return tail, info.Size, err
	})
	if err != nil || len(f.Chunks) < 3 {
		t.Fatalf("%d chunks, %v", len(f.Chunks), err)
	}
	path := objectFile(dir, keys[0])
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body[f.Chunks[1].Offset+9] ^= 1
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
	lose := func(args ...string) result {
		t.Helper()
		return cli(t, "", append([]string{"accept-loss", keys[0], "s", "--dir", dir}, args...)...)
	}
	refused := lose("--yes")
	refused.want(t, exitUsage, "can still be read", "--with-sound-rows")
	rows := 0
	for _, line := range strings.Split(refused.out, "\n") {
		_, command, ok := strings.Cut(line, "strandline ")
		if !ok || !strings.Contains(line, "can still be read") {
			continue
		}
		args := strings.Fields(strings.ReplaceAll(command, "'", ""))
		got := cli(t, "", append(args, "--dir", dir)...)
		got.want(t, exitOK)
		rows += strings.Count(got.out, "\n")
	}
	if want := all - int(f.Chunks[1].Rows); rows != want {
		t.Errorf("%d rows were copied, %d can be read", rows, want)
	}
	if r := fsckOf(t, dir, exitOK); r.LostTotal != 0 {
		t.Fatalf("given up at the first word: %+v", r)
	}
	lose("--yes", "--with-sound-rows").want(t, exitOK, fmt.Sprintf("%d rows are given up", all))
	if r := fsckOf(t, dir, exitFailed); r.LostTotal != 1 || r.DamageTotal != 0 { // the object is pending garbage
		t.Fatalf("%+v", r)
	}
	auditOnce(t, dir).want(t, exitOK)
	if left := keysUnder(t, bucket, "obj/"); len(left) != 0 {
		t.Errorf("the object stands: %v", left)
	}
}

// noise is n bytes of text that a codec makes little of.
func noise(n int) string {
	b := make([]byte, n)
	x := uint64(n) | 1
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>58]
	}
	return string(b)
}
