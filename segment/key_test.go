package segment

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func sampleKeys() []string {
	c := Chain{1, 0xab}
	keys := []string{
		SlotKey(c, 1), SlotKey(Chain{^Epoch(0), ^Shard(0)}, ^ID(0)), HeadKey(c), StampKey(), TopologyKey(1), TrimKey(c, 17),
		DoctorPrefix + "0198/create-once-1/key", DoctorPrefix + "0198/now",
		PackKey(c, 1, 9, 0), PackKey(c, 1, 9, 2), PackKey(c, 1, 10, 0),
	}
	for _, name := range sampleNames() {
		keys = append(keys, StreamKey(name, 1, 1, 0), StreamKey(name, 1, 0x10, 0), StreamKey(name, 1, 1, 1), StreamKey(name, 1, 1, 0xffffffff))
	}
	return keys
}

func sampleNames() []string {
	return []string{
		"x", "x1", "x~1", "x/", "x%", "X", ".", "..", "=h", "=", "a/b", "a b", "πλανήτης", "tenant-a_9", "\x00", AuditStream(3),
		strings.Repeat("a", 200), strings.Repeat("a", 199) + "b", strings.Repeat("é", 100), strings.Repeat("/", 66), strings.Repeat("/", 67),
	}
}

// K38: tearing one stream down must not meet another's keys.
func TestK38KeysApart(t *testing.T) {
	keys := sampleKeys()
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k] {
			t.Errorf("%s twice", k)
		}
		seen[k] = true
		checkKeyShape(t, k)
		for _, other := range keys {
			if strings.HasPrefix(other, k+"/") {
				t.Errorf("%s is a /-prefix of %s", k, other)
			}
		}
	}
	names := sampleNames()
	for _, a := range names {
		for _, b := range names {
			if a != b && strings.HasPrefix(StreamKey(b, 1, 1, 0), StreamPrefix(a)) {
				t.Errorf("%q stands under the prefix of %q", b, a)
			}
		}
	}
}

func checkKeyShape(t testing.TB, k string) {
	t.Helper()
	for _, seg := range strings.Split(k, "/") {
		if seg == "" || seg == "." || seg == ".." || len(seg) > 255 {
			t.Errorf("%q has the segment %q", k, seg)
		}
	}
	if i := strings.IndexFunc(k, func(r rune) bool {
		return (r >= 128 || !plain(byte(r))) && !strings.ContainsRune(".~=/", r)
	}); i >= 0 {
		t.Errorf("%q holds %q", k, k[i])
	}
}

func TestKeysRoundTrip(t *testing.T) {
	for _, s := range sampleKeys() {
		k, err := ParseKey(s)
		if err != nil || k.String() != s {
			t.Errorf("%s: %s, %v", s, k, err)
		}
	}
	for _, name := range sampleNames() {
		k := mustDo(ParseKey(StreamKey(name, 4, 5, 6)))(t)
		hashed := len(escape(name)) > 200
		if (k.Stream == name) == hashed || !k.IsOf(name) || k.IsOf(name+"x") || k.IsOf("") {
			t.Errorf("%q: %+v", name, k)
		}
		if k.Kind != KeyStream || k.Chain.Epoch != 4 || k.First != 5 || k.Revision != 6 {
			t.Errorf("%q: %+v", name, k)
		}
	}
	if k := mustDo(ParseKey("pack/00000001.000000ab/0000000000000001-0000000000000009~00000002"))(t); k != (Key{Kind: KeyPack, Chain: Chain{1, 0xab}, ID: 1, LastID: 9, Revision: 2}) {
		t.Errorf("%+v", k)
	}
}

func TestUnknownKeys(t *testing.T) {
	for _, s := range []string{
		"", "/", "seg", "seg/", "seg/1.2.3", "SEG/00000001.000000ab.0000000000000001", "seg/00000001.000000AB.0000000000000001",
		"seg/00000001.000000ab.0000000000000001/", "seg/00000001.000000ab.0000000000000001~00000001", "rw/00000001.000000ab/", "meta/strandline/",
		"meta/strandline2", "meta/", "topology/1", "trims/00000001.000000ab/", "pack/00000001.000000ab/0000000000000009-0000000000000001",
		"pack/00000001.000000ab/0000000000000001-0000000000000009~00000000", "obj/d24/a/00000001.0000000000000001~00000000",
		"obj/000/a/00000001.0000000000000001", "obj/d24/=61/00000001.0000000000000001", "obj/d24/=6/00000001.0000000000000001",
		"obj/d24/~a/00000001.0000000000000001", "obj/d24//00000001.0000000000000001", "obj/d24/a/b/00000001.0000000000000001",
		"obj/d24/=h00/00000001.0000000000000001", "obj/d24/a/00000001.0000000000000001~1", "obj/d24/a",
		"meta/doctor/", "meta/doctor/run", "meta/doctor/run/", "meta/doctor//x", "meta/doctor/run/../x", "meta/doctor/run/a b", "meta/doctor2/run/x",
	} {
		if k, err := ParseKey(s); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("%q was taken: %+v, %v", s, k, err)
		}
	}
	if _, err := ParseKey("obj/d24/a/00000001.0000000000000001"); err != nil {
		t.Errorf("the right fan of %q: %v", "a", err)
	}
}

func FuzzParseKey(f *testing.F) {
	for i, k := range sampleKeys() {
		seed(f, i, k)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			if !errors.Is(err, ErrUnknownKey) {
				t.Fatal(err)
			}
			return
		}
		if k.String() != s {
			t.Fatalf("%q parses to %+v, which is %q", s, k, k.String())
		}
		checkKeyShape(t, s)
	})
}

func FuzzStreamKey(f *testing.F) {
	for i, n := range sampleNames() {
		seed(f, i, n, uint32(1), uint64(2), uint32(i))
	}
	f.Fuzz(func(t *testing.T, name string, e uint32, first uint64, rev uint32) {
		if checkAnyStream(name) != nil {
			return
		}
		s := StreamKey(name, Epoch(e), Seq(first), rev)
		checkKeyShape(t, s)
		k, err := ParseKey(s)
		if err != nil {
			t.Fatal(err)
		}
		if !k.IsOf(name) || k.Chain.Epoch != Epoch(e) || k.First != Seq(first) || k.Revision != rev || k.String() != s {
			t.Fatalf("%q: %+v", s, k)
		}
	})
}

func TestAffinityVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/affinity.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, line := range lines[1:] {
		col := strings.Split(line, "\t")
		if got := fmt.Sprintf("%016x", affinityHash(col[0])); got != col[1] {
			t.Errorf("%q hashes to %s, want %s", col[0], got, col[1])
		}
		for i, shards := range []uint32{2, 7, 64, 1000} {
			if got := strconv.Itoa(int(ShardOf(col[0], shards))); got != col[2+i] {
				t.Errorf("shard of %q among %d is %s, want %s", col[0], shards, got, col[2+i])
			}
		}
	}
	if len(lines) < 17 {
		t.Errorf("only %d vectors", len(lines)-1)
	}
	if got := ShardOf(AuditStream(5), 2); got != 5 {
		t.Errorf("~audit/5 belongs to shard %d", got)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, "a": true, strings.Repeat("a", 200): true, strings.Repeat("a", 201): false, "\xff": false, "~": false,
		"~audit/1": false, "a~": true, "/": true, "\n": true,
	} {
		err := CheckStream(name)
		var ne *NameError
		if (err == nil) != ok || !ok && (!errors.Is(err, ErrName) || !errors.As(err, &ne)) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, ok := range map[string]bool{"~audit/0": true, "~audit/4294967295": true, "~audit/4294967296": false, "~audit/01": false, "~audit/": false, "~other": false, "a": false} {
		if err := CheckReserved(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
