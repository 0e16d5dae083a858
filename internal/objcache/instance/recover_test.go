package instance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

func TestRestartKeeps(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 5*mib+9)
	x.put("pack/b", 10)
	x.same("seg/a", objstore.Whole)
	x.same("pack/b", objstore.Whole)
	x.settled()
	before := x.cache.Stats()
	stray := filepath.Join(filepath.Dir(x.files()[0]), "not-ours")
	left := x.files()[0] + temporary
	for _, f := range []string{stray, left} {
		x.ok(os.WriteFile(f, []byte("x"), 0o600))
	}
	x.reopen()
	if s := x.cache.Stats(); s.Recovered != 7 || s.Bytes != before.Bytes || s.Blocks != before.Blocks {
		t.Errorf("%+v, before %+v", s, before)
	}
	if n := x.asked(func() { x.same("seg/a", objstore.Whole); x.same("pack/b", objstore.Suffix(3)) }); n != 0 {
		t.Errorf("%d GETs after a restart", n)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file stands: %v", err)
	}
	x.ok(os.Remove(stray)) // it stands: what is not ours is not touched

	x.now.Add(int64(DefaultMaxAge) + 1)
	x.reopen()
	if s := x.cache.Stats(); s.Recovered != 0 || s.Bytes != 0 || len(x.files()) != 0 {
		t.Errorf("too old, and recovered: %+v", s)
	}
}

// After a power cut unlinked files may be back: nothing is kept over a boot.
func TestRebootEmpties(t *testing.T) {
	for name, boot := range map[string]string{"another boot": "boot-2", "unknown boot": ""} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, Config{})
			x.put("seg/a", 2*mib)
			x.same("seg/a", objstore.Whole)
			x.settled()
			x.cfg.boot = func() string { return boot }
			x.reopen()
			if s := x.cache.Stats(); s.Recovered != 0 || len(x.files()) != 0 {
				t.Errorf("%+v", s)
			}
			x.same("seg/a", objstore.Whole)
		})
	}
}

func TestRestartWithLess(t *testing.T) {
	x := newRig(t, Config{Bytes: 2 * LeastBytes})
	x.put("seg/a", 70*mib)
	x.same("seg/a", objstore.Whole)
	x.settled()
	x.cfg.Bytes = LeastBytes
	x.reopen()
	x.until("the bound holds", func() bool { return x.cache.Stats().Bytes <= LeastBytes })
	x.same("seg/a", objstore.Whole)
}

// Files of one key that do not agree on its object all go.
func TestK30RestartFindsTwoContents(t *testing.T) {
	x := newRig(t, Config{})
	x.put("rw/a", 2*mib)
	x.same("rw/a", span(0, mib))
	x.settled()
	first := x.files()[0]
	saved, err := os.ReadFile(first)
	x.ok(err)
	body := bytes.Repeat([]byte{7}, 2*mib)
	_, err = x.mem.Put(t.Context(), "rw/a", bytes.NewReader(body), int64(len(body)), objstore.PutOptions{})
	x.ok(err)
	x.ok(x.cache.Evict(testBucket, []string{"rw/a"}))
	x.same("rw/a", span(mib, mib))
	x.settled()
	x.ok(os.WriteFile(first, saved, 0o600)) // block 0 of the old content, beside block 1 of the new
	x.reopen()
	if s := x.cache.Stats(); s.Recovered > 1 || s.Blocks != 0 || len(x.files()) != 0 {
		t.Errorf("%+v, %v", s, x.files())
	}
	x.same("rw/a", objstore.Whole)
}

func TestOneInstanceADirectory(t *testing.T) {
	x := newRig(t, Config{})
	if _, err := Open(x.cfg, nil); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	for _, bad := range []Config{{}, {Dir: "x", Bytes: 1}, {Dir: "x", MaxAge: -time.Second}} {
		if _, err := Open(bad, nil); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func FuzzHeader(f *testing.F) {
	info := objstore.Info{Key: "seg/a", Size: mib + 5, ETag: "e", Modified: time.Unix(5, 6), Meta: map[string]string{"a": "b"}}
	d := describe(testBucket, &info, 1)
	d.Length, d.CRC, d.Filled = 5, 7, 8
	f.Add(encodeHeader(&d))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, n, err := decodeHeader(b)
		if err != nil {
			return
		}
		if !bytes.Equal(encodeHeader(&d), b[:n]) || !d.sound() {
			t.Fatalf("%+v", d)
		}
	})
}
