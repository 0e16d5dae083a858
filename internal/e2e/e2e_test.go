//go:build unix

package e2e

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The knobs of `make e2e`.
var (
	hold    = flag.Duration("e2e.hold", time.Second, "how long load runs between two faults")
	streams = flag.Int("e2e.streams", 2, "streams of each shard")
	keep    = flag.String("e2e.dir", "", "where the run lives; it stays")
)

// TestEndToEnd breaks a whole deployment of real processes, and loses nothing.
func TestEndToEnd(t *testing.T) {
	lookAtSources(t, "../..")
	dir := *keep
	if dir == "" {
		var err error
		// Not t.TempDir: the logs of a run that fails stay.
		if dir, err = os.MkdirTemp("", "strandline-e2e-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Log("the run lies in ", dir)
			} else if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{Dir: dir, Hold: *hold, Streams: *streams})
	t.Logf("\n%s", report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows < 1000 || report.Shared < 100 || report.Shared == report.Rows || report.Records < 4*sentARun {
		t.Errorf("the run did too little to prove anything: %+v", report)
	}
}

// lookAtSources has the test cache know that this test depends on the command: the cache
// sees what a test's own process looks at, and the compiler is another one.
func lookAtSources(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
