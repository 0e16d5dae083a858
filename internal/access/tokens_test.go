package access

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a token file with the tokens in force.
type rig struct {
	*Tokens
	file string
	log  *logtest.Journal
}

func open(t *testing.T, lines ...string) *rig {
	t.Helper()
	r := &rig{file: filepath.Join(t.TempDir(), "tokens"), log: logtest.New()}
	r.write(t, lines...)
	tokens, err := Open(r.file, slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tokens.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Tokens = tokens
	return r
}

func (r *rig) write(t *testing.T, lines ...string) {
	t.Helper()
	if err := os.WriteFile(r.file+".new", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		t.Fatal(err)
	}
}

func header(token string) []string { return []string{"Bearer " + token} }

func TestDecide(t *testing.T) {
	var tokens []string
	var lines []string
	for i, scopes := range []string{"append", "read", "admin", "append,read", "append,read,admin"} {
		token, e := entryOf(t, "t"+strconv.Itoa(i), scopes)
		tokens, lines = append(tokens, token), append(lines, e.Line())
	}
	r := open(t, lines...)
	for i, want := range []map[string]verdict{
		{Append: granted, Read: lacking, Admin: lacking},
		{Append: lacking, Read: granted, Admin: lacking},
		{Append: lacking, Read: lacking, Admin: granted}, // admin implies nothing
		{Append: granted, Read: granted, Admin: lacking},
		{Append: granted, Read: granted, Admin: granted},
	} {
		for scope, v := range want {
			got, e := r.decide(scope, header(tokens[i]))
			if got != v || e == nil || e.Name != "t"+strconv.Itoa(i) {
				t.Errorf("token %d, %s: verdict %d of %v, want %d", i, scope, got, e, v)
			}
		}
	}
	sound := tokens[4]
	for name, c := range map[string]struct {
		headers []string
		want    verdict
	}{
		"none":               {nil, missing},
		"unknown":            {header(NewToken()), unknown},
		"another's hash":     {header(strings.TrimPrefix((*r.set.Load())[4].Hash.String(), hashPrefix)), unknown},
		"empty":              {[]string{""}, malformed},
		"scheme only":        {[]string{"Bearer "}, malformed},
		"no scheme":          {[]string{sound}, malformed},
		"another scheme":     {[]string{"Basic  " + sound}, malformed},
		"two":                {[]string{"Bearer " + sound, "Bearer " + sound}, malformed},
		"two in one":         {[]string{"Bearer " + sound + ", Bearer " + sound}, malformed},
		"two spaces":         {[]string{"Bearer  " + sound}, malformed},
		"space after":        {[]string{"Bearer " + sound + " "}, malformed},
		"NUL after":          {[]string{"Bearer " + sound + "\x00"}, malformed},
		"long":               {header(sound + strings.Repeat("a", 1<<16)), malformed},
		"another case":       {header(strings.ToUpper(sound)), unknown},
		"one more":           {header(sound + "a"), unknown},
		"one less":           {header(sound[:len(sound)-1]), unknown},
		"scheme's case":      {[]string{"bEaReR " + sound}, granted},
		"scheme with Kelvin": {[]string{"Beare\u212a " + sound}, malformed},
	} {
		if got, _ := r.decide(Read, c.headers); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

func TestReload(t *testing.T) {
	first, one := entryOf(t, "one", "read")
	second, two := entryOf(t, "two", "read")
	r := open(t, one.Line())
	is := func(token string, want verdict) {
		t.Helper()
		if got, _ := r.decide(Read, header(token)); got != want {
			t.Errorf("verdict %d, want %d", got, want)
		}
	}
	is(first, granted)
	is(second, unknown)
	r.write(t, two.Line())
	r.log.Until(t, "read again")
	is(first, unknown)
	is(second, granted)

	r.write(t, "# half a", "two read sha256:00")
	r.log.Until(t, "BROKEN")
	if log := r.log.String(); !strings.Contains(log, "line 2") || !r.Stats().Broken {
		t.Errorf("a broken file is not told with its line:\n%s", log)
	}
	is(second, granted)
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.log.Until(t, "no such file")
	is(second, granted)
	r.write(t, one.Line(), two.Line())
	r.log.Until(t, "tokens=2")
	is(first, granted)
	is(second, granted)
	if s := r.Stats(); s.Reloads != 2 || s.ReloadFailures != 2 || s.Broken || s.Tokens != 2 {
		t.Errorf("%+v", s)
	}
	// As it was: a look at the same file changes nothing.
	r.reload()
	if s := r.Stats(); s.Reloads != 2 {
		t.Errorf("%+v", s)
	}
}

// TestMendedAsItWas: a file that was broken for a while and is as before again is sound.
func TestMendedAsItWas(t *testing.T) {
	_, one := entryOf(t, "one", "read")
	r := open(t, one.Line())
	r.write(t, "broken")
	r.log.Until(t, "BROKEN")
	r.write(t, one.Line())
	r.log.Until(t, "read again")
	if r.Stats().Broken {
		t.Error("a mended file counts as broken")
	}
}

// TestComplainsAgain: what is broken is said once a minute, not with each look.
func TestComplainsAgain(t *testing.T) {
	_, one := entryOf(t, "one", "read")
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(one.Line()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := logtest.New()
	tokens, err := load(path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(want int) {
		t.Helper()
		tokens.reload()
		if n := strings.Count(log.String(), "BROKEN"); n != want {
			t.Errorf("said %d times, want %d", n, want)
		}
	}
	said(1)
	said(1)
	tokens.said = tokens.said.Add(-brokenEvery)
	said(2)
	if n := tokens.Stats().ReloadFailures; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
}

func TestOpenBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if _, err := Open(path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file that is not there is opened")
	}
	if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken file is opened: %v", err)
	}
}

func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FromFile(path); err == nil {
		t.Error("a file that is not there is taken")
	}
	first, second := NewToken(), NewToken()
	put("\n" + first + "\n")
	s, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{first, second, second} {
		if got, err := s.Token(t.Context()); err != nil || got != want {
			t.Errorf("not the token of the file: %v", err)
		}
		put(second)
	}
	_, e := entryOf(t, "one", "read")
	for _, bad := range []string{"", "short", e.Line(), first + "\n" + second} {
		put(bad)
		if _, err := s.Token(t.Context()); err == nil {
			t.Errorf("%q is taken for a token", bad)
		} else if strings.Contains(err.Error(), first) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	if _, err := Fixed("short"); err == nil {
		t.Error("any text is a token")
	}
	if s, err := Fixed(" " + first + "\n"); err != nil {
		t.Error(err)
	} else if got, _ := s.Token(t.Context()); got != first {
		t.Error("not the token")
	}
}

func BenchmarkDecide(b *testing.B) {
	entries := make([]Entry, MaxTokens)
	for i := range entries {
		_, entries[i] = entryOf(b, "n", "read")
	}
	token := NewToken()
	for b.Loop() {
		if find(entries, token) != nil {
			b.Fatal("found")
		}
	}
}
