package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entryOf makes a token and its entry.
func entryOf(t testing.TB, name, scopes string) (token string, e Entry) {
	t.Helper()
	token = NewToken()
	e, err := NewEntry(name, scopes, token)
	if err != nil {
		t.Fatal(err)
	}
	return token, e
}

func TestLineIsRead(t *testing.T) {
	token, e := entryOf(t, "ingest-1", "append,read")
	if strings.Contains(e.Line(), token) {
		t.Fatal("the line holds the token")
	}
	got, err := parse([]byte("# who may\n\n  " + e.Line() + "  # from 2026\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Line() != e.Line() {
		t.Errorf("%v, want %v", got, e)
	}
	other := NewToken()
	if other == token || len(other) < leastToken {
		t.Errorf("two tokens: %d characters, equal %v", len(other), other == token)
	}
}

// TestBrokenLines: every fault is told with its line, and none quotes what stands there.
func TestBrokenLines(t *testing.T) {
	token, e := entryOf(t, "one", "read")
	_, other := entryOf(t, "two", "append")
	for name, c := range map[string]struct {
		text string
		line int // 0: of the whole file
		want string
	}{
		"nothing":            {"# only this\n", 0, "no token"},
		"a token, no hash":   {e.Line() + "\ntwo read " + token + "\n", 2, "hash"},
		"a token as name":    {"\n" + token + "~ read " + other.Hash.String(), 2, "name"},
		"a token as scope":   {"two " + token + " " + other.Hash.String(), 1, "scopes are"},
		"two words":          {"two " + token, 1, "words"},
		"four words":         {other.Line() + " " + token, 1, "words"},
		"an unknown scope":   {"two write " + other.Hash.String(), 1, "scopes are"},
		"a scope twice":      {"two read,read " + other.Hash.String(), 1, "twice"},
		"no scope":           {"two , " + other.Hash.String(), 1, "scopes are"},
		"another kind":       {"two read sha512:" + other.Hash.String()[7:], 1, "sha256:"},
		"a short hash":       {"two read " + other.Hash.String()[:70], 1, "64"},
		"no hex":             {"two read sha256:" + strings.Repeat("g", 64), 1, "hex"},
		"a name again":       {e.Line() + "\none append " + other.Hash.String(), 2, "line 1"},
		"a token again":      {e.Line() + "\ntwo append " + e.Hash.String(), 2, "line 1"},
		"a name too long":    {strings.Repeat("n", 65) + " read " + e.Hash.String(), 1, "1 to 64"},
		"an odd name":        {"a\x00b read " + e.Hash.String(), 1, "letters"},
		"a name with a bell": {"a\ab read " + e.Hash.String(), 1, "letters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error shows a token: %v", err)
			}
			var at *LineError
			if c.line > 0 && (!errors.As(err, &at) || at.Line != c.line) {
				t.Errorf("error %v, want one of line %d", err, c.line)
			}
		})
	}
	_, err := parse([]byte("one\ntwo\nthree read x\n"))
	for _, line := range []string{"line 1:", "line 2:", "line 3:"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("not all faults at once: %v", err)
		}
	}
}

func TestMostTokens(t *testing.T) {
	var text strings.Builder
	for i := range MaxTokens + 1 {
		_, e := entryOf(t, "n"+string(rune('a'+i%26))+strings.Repeat("x", i/26), "read")
		text.WriteString(e.Line() + "\n")
		if _, err := parse([]byte(text.String())); i == MaxTokens && err == nil {
			t.Errorf("%d tokens are taken", i+1)
		} else if i == MaxTokens-1 && err != nil {
			t.Errorf("%d tokens: %v", i+1, err)
		}
	}
}

func TestFileIsNobodyElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	_, e := entryOf(t, "one", "read")
	if err := os.WriteFile(path, []byte(e.Line()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o646); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a file that everybody may write: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path); err != nil {
		t.Error(err)
	}
	if _, err := readFile(filepath.Dir(path)); err == nil {
		t.Error("a folder is read as a token file")
	}
	if err := os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path); err == nil {
		t.Error("a file of any size is read")
	}
}

func TestHashOf(t *testing.T) {
	for _, bad := range []string{"", "short", strings.Repeat("a", 21), strings.Repeat("a", 513), strings.Repeat("a", 30) + " ", strings.Repeat("a", 30) + "\n", strings.Repeat("ä", 30)} {
		if _, err := HashOf(bad); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", bad, err)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("the error shows %q", bad)
		}
	}
	// As sha256sum has it: files can be made by other tools.
	h, err := HashOf("abcdefghijklmnopqrstuvwxyz")
	if want := "sha256:71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73"; err != nil || h.String() != want {
		t.Errorf("%v, %v, want %s", h, err, want)
	}
}

func FuzzParse(f *testing.F) {
	_, e := entryOf(f, "one", "append,read,admin")
	f.Add([]byte(e.Line()))
	f.Add([]byte("# x\n\n" + e.Line() + " # y\r\n" + e.Line()))
	f.Add([]byte("a read sha256:" + strings.Repeat("0", 64)))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parse(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, e := range entries {
			again.WriteString(e.Line() + "\n")
		}
		second, err := parse([]byte(again.String()))
		if err != nil || len(second) != len(entries) {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}
