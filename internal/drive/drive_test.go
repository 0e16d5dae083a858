package drive

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options of a test: the defaults in a directory of its own.
func options(t *testing.T, name string) Options {
	t.Helper()
	o := Defaults(name)
	o.Dir = filepath.Join(t.TempDir(), "d")
	return o
}

func mustRun(t *testing.T, name string, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fails are the names of the claims that do not hold.
func fails(claims []Claim) (out []string) {
	for _, c := range claims {
		if !c.Holds() {
			out = append(out, c.Name)
		}
	}
	return out
}

// mustFail demands that exactly these claims fail.
func mustFail(t *testing.T, claims []Claim, want ...string) {
	t.Helper()
	if got := fails(claims); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v fail, want %v: %v", got, want, claims)
	}
}

// mustAllFail: of what was never read, no claim holds.
func mustAllFail(t *testing.T, claims []Claim) {
	t.Helper()
	for _, c := range claims {
		if c.Holds() {
			t.Errorf("%s holds though nothing was read", c.Name)
		}
	}
}

func TestDrivesHold(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			o := options(t, name)
			for range 2 { // a former drive's directory is taken again
				if r := mustRun(t, name, o); !r.Holds() {
					t.Fatalf("%v; %+v", r.Divergence(), r)
				}
			}
		})
	}
}

func TestReportJSON(t *testing.T) {
	r := &Report{Drive: Recovery, Figures: []Figure{{"appended", 3}}, Claims: []Claim{{"zero_loss", nil}, {"ordering_ok", errors.New(`a "b"`)}}}
	b, err := json.Marshal(r)
	if want := `{"drive":"recovery","holds":false,"report":{"appended":3,"zero_loss":true,"ordering_ok":false,"divergence":"ordering_ok: a \"b\""}}`; err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	r = &Report{Drive: Recovery, Claims: []Claim{{"zero_loss", nil}}}
	if b, err = json.Marshal(r); err != nil || !strings.Contains(string(b), `"holds":true`) || !strings.Contains(string(b), `"divergence":null`) {
		t.Errorf("%s, %v", b, err)
	}
	r.Claims = append(r.Claims, Claim{"ordering_ok", errors.New("nothing was read")})
	r.Stopped = errors.New("x")
	if b, err = json.Marshal(r); err != nil || !strings.Contains(string(b), `"holds":false,"report":{"zero_loss":true,"ordering_ok":null,`) {
		t.Errorf("stopped: %s, %v", b, err)
	}
	r.Claims, r.Stopped = r.Claims[:1], nil
	if (&Report{}).Holds() {
		t.Error("a report without claims holds")
	}
	if r.Stopped = errors.New("x"); r.Holds() {
		t.Error("a drive that was not finished holds")
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Options)
		want []string
	}{
		"all at once": {func(o *Options) { *o = Options{Consumer: ""} }, []string{"--dir", "--events", "--shards", "--segment-bytes", "--min-retained-segments", "--consumer"}},
		"many events": {func(o *Options) { o.Events = MaxEvents + 1 }, []string{"--events"}},
		"one shard":   {func(o *Options) { o.Shards = 1 }, []string{"--shards"}},
		"many shards": {func(o *Options) { o.Shards = MaxShards + 1 }, []string{"--shards"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, Shared)
			c.set(&o)
			_, err := Run(t.Context(), Shared, o)
			if !errors.Is(err, ErrOptions) {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("nothing says %s: %v", w, err)
				}
			}
		})
	}
	o := options(t, GC)
	o.Events, o.SegmentBytes = MaxEvents, 64
	if _, err := Run(t.Context(), GC, o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "segments") {
		t.Errorf("too many segments: %v", err)
	}
	if _, err := Run(t.Context(), "dance", options(t, Shared)); !errors.Is(err, ErrOptions) {
		t.Errorf("an unknown drive: %v", err)
	}
}

// TestForeignDirectory: what no drive made is refused and left.
func TestForeignDirectory(t *testing.T) {
	for name, files := range map[string][]string{
		"somebody's":        {"notes.txt"},
		"a deployment":      {"bucket", "catalog.db"},
		"marked, and other": {markFile, "notes.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range files {
				if err := os.WriteFile(filepath.Join(dir, f), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := options(t, Recovery)
			o.Dir = dir
			if _, err := Run(t.Context(), Recovery, o); !errors.Is(err, ErrDir) {
				t.Errorf("taken: %v", err)
			}
			for _, f := range files {
				if b, err := os.ReadFile(filepath.Join(dir, f)); err != nil || string(b) != "mine" {
					t.Errorf("%s: %q, %v", f, b, err)
				}
			}
		})
	}
}

// breaking runs a drive in which something is broken at a moment, and demands that the
// drive does not hold and that these claims are among those that do not.
func breaking(t *testing.T, name, moment string, breakIt func(ctx context.Context, s *site) error, want ...string) {
	t.Helper()
	o := options(t, name)
	hit := false
	o.at = func(ctx context.Context, m string, s *site) error {
		if m != moment {
			return nil
		}
		hit = true
		return breakIt(ctx, s)
	}
	r := mustRun(t, name, o)
	if !hit {
		t.Fatalf("the drive has no moment %q", moment)
	}
	if r.Holds() || r.Divergence() == nil {
		t.Fatalf("the drive holds: %+v", r)
	}
	got := strings.Join(fails(r.Claims), " ")
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s holds; not: %s; %v", w, got, r.Divergence())
		}
	}
}

// shardDir of a disk in a drive.
func (s *site) diskDir(disk string, shard segment.Shard) string {
	return filepath.Join(s.dir, "disk-"+disk, s.chain(shard).String())
}
