//go:build unix

package pgha

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/pgserver"
)

// site is the bucket (a directory), the catalog's two servers, and the command.
type site struct {
	t                *testing.T
	binary, dir      string
	primary, standby *pgserver.Server
}

func newSite(t *testing.T, synchronous bool) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), binary: binary}
	s.primary = pgserver.Start(t, pgserver.Options{})
	s.standby = s.primary.Standby(t, synchronous)
	return s
}

// backend are the flags of every command. The password comes by the environment.
func (s *site) backend() []string {
	u, err := url.Parse(pgserver.DSN("postgres", s.primary, s.standby))
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.User(u.User.Username())
	return []string{"--store", "standard=file://" + s.bucket(), "--catalog", u.String()}
}

func (s *site) bucket() string { return filepath.Join(s.dir, "bucket") }

func (s *site) env() []string {
	return append(os.Environ(), "PGPASSWORD="+s.primary.Password())
}

// objects are the files of the bucket's objects below a prefix.
func (s *site) objects(prefix string) map[string]bool {
	s.t.Helper()
	keys := map[string]bool{}
	err := filepath.WalkDir(s.bucket(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		if key, err := filepath.Rel(s.bucket(), path); err == nil && strings.HasPrefix(key, prefix) && strings.HasSuffix(key, "@") {
			keys[key] = true
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

// until asks again and again; a thing that does not come is a failure.
func (s *site) until(within time.Duration, what string, so func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !so(); <-tick.C {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s", within, what)
		}
	}
}
