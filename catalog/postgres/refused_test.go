package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/pgserver"
)

const (
	refusedOwn   = "own-secret-41"
	refusedWrong = "wrong-secret-42"
)

// TestRefused: whoever is not let in is told what to correct, and nobody is told a password.
func TestRefused(t *testing.T) {
	s := pgserver.Start(t, pgserver.Options{})
	dsn := s.NewDatabase(t)
	run(t, dsn, "CREATE ROLE asker LOGIN PASSWORD '"+refusedOwn+"'")
	run(t, dsn, "CREATE ROLE idle NOLOGIN PASSWORD '"+refusedOwn+"'")
	for name, c := range map[string]struct {
		change func(u *url.URL)
		says   string
		kind   error
	}{
		"password":  {func(u *url.URL) { u.User = url.UserPassword("asker", refusedWrong) }, "PGPASSWORD", nil},
		"user":      {func(u *url.URL) { u.User = url.UserPassword("nobody", refusedOwn) }, "correct the user", nil},
		"no login":  {func(u *url.URL) { u.User = url.UserPassword("idle", refusedOwn) }, "needs LOGIN", nil},
		"database":  {func(u *url.URL) { u.Path = "/none" }, "correct the DSN's database", nil},
		"right":     {func(*url.URL) {}, "CREATE on the database", nil},
		"parameter": {func(u *url.URL) { set(u, "nonsense", "1") }, "correct the DSN's parameters", nil},
		"tls":       {func(u *url.URL) { set(u, "sslmode", "require") }, "sslmode", catalog.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.UserPassword("asker", refusedOwn)
			c.change(u)
			d, err := Open(t.Context(), Options{DSN: u.String()})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it is let in"), d.Close()))
			}
			if !errors.Is(catalog.KindOf(err), c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: want kind %v and %q", err, c.kind, c.says)
			}
			if strings.Contains(err.Error(), refusedOwn) || strings.Contains(err.Error(), refusedWrong) {
				t.Errorf("a password is told: %v", err)
			}
		})
	}
}

func set(u *url.URL, key, value string) {
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
}
