package access

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/strandline/strandline/internal/filewatch"
)

const (
	// MaxTokens bounds what one request costs: it is compared with all of them.
	MaxTokens    = 1000
	maxFileBytes = 1 << 20
	maxName      = 64
)

// Entry is one line of the file.
type Entry struct {
	Name   string
	Scopes []string
	Hash   Hash
}

// Line is the entry as it stands in a file.
func (e Entry) Line() string {
	return e.Name + " " + strings.Join(e.Scopes, ",") + " " + e.Hash.String()
}

// LineError is what is wrong with one line; it never quotes the line, which may hold a
// token that somebody put in the place of its hash.
type LineError struct {
	Line int
	Text string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// NewEntry checks a name and scopes, and makes the entry of a token.
func NewEntry(name, scopeList, token string) (Entry, error) {
	h, err := HashOf(token)
	if err != nil {
		return Entry{}, err
	}
	if err := checkName(name); err != nil {
		return Entry{}, err
	}
	list, err := parseScopes(scopeList)
	return Entry{Name: name, Scopes: list, Hash: h}, err
}

// readFile reads a token file. It has to be a file that not everybody may write.
func readFile(path string) (text []byte, err error) {
	f, err := filewatch.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("everybody on this machine may write %s, and so let themselves in: chmod o-w it", path)
	}
	text, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("%s is larger than 1 MiB: %d tokens at most", path, MaxTokens)
	}
	return text, err
}

// parse reads all lines and reports every fault at once. Lines are
//
//	NAME SCOPE[,SCOPE…] sha256:HEX   # and comments
//
// A file without a token is a fault: it is what a file looks like that is just being written.
func parse(text []byte) ([]Entry, error) {
	var entries []Entry
	var errs []error
	names, hashes := map[string]int{}, map[Hash]int{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		e, empty, err := parseLine(string(line))
		switch {
		case empty:
			continue
		case err != nil:
		case names[e.Name] != 0:
			err = fmt.Errorf("the name of line %d again: give each token its own, so that the log tells who it was", names[e.Name])
		case hashes[e.Hash] != 0:
			err = fmt.Errorf("the token of line %d again: a token has one line", hashes[e.Hash])
		}
		if err != nil {
			errs = append(errs, &LineError{n, err.Error()})
			continue
		}
		names[e.Name], hashes[e.Hash] = n, n
		entries = append(entries, e)
	}
	switch {
	case len(errs) > 0:
	case len(entries) == 0:
		errs = append(errs, errors.New("there is no token in it: make one with strandline token new"))
	case len(entries) > MaxTokens:
		errs = append(errs, fmt.Errorf("%d tokens: %d at most", len(entries), MaxTokens))
	}
	return entries, errors.Join(errs...)
}

func parseLine(line string) (e Entry, empty bool, err error) {
	if at := strings.IndexByte(line, '#'); at >= 0 {
		line = line[:at]
	}
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return e, true, nil
	}
	if len(fields) != 3 {
		return e, false, fmt.Errorf("%d words: write NAME SCOPES sha256:HASH, as strandline token new prints it", len(fields))
	}
	e.Name = fields[0]
	if err := checkName(e.Name); err != nil {
		return e, false, err
	}
	if e.Scopes, err = parseScopes(fields[1]); err != nil {
		return e, false, err
	}
	digits, ok := strings.CutPrefix(fields[2], hashPrefix)
	if !ok || len(digits) != 2*len(e.Hash) {
		return e, false, errors.New("the third word is no sha256: and 64 hex digits: a token itself does not belong here, its hash does (strandline token hash)")
	}
	if _, err := hex.Decode(e.Hash[:], []byte(digits)); err != nil {
		return e, false, errors.New("the hash has other characters than hex digits")
	}
	return e, false, nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name of %d characters: 1 to %d", len(name), maxName)
	}
	for _, c := range []byte(name) {
		if !tokenChar(c) || c == '+' || c == '~' {
			return errors.New("a name holds letters, digits and -._/ only")
		}
	}
	return nil
}

// parseScopes reads append,read,admin.
func parseScopes(text string) ([]string, error) {
	var out []string
	for scope := range strings.SplitSeq(text, ",") {
		switch {
		case !slices.Contains(scopes, scope):
			return nil, fmt.Errorf("scopes are %s, joined by commas", strings.Join(scopes, ", "))
		case slices.Contains(out, scope):
			return nil, fmt.Errorf("scope %s is given twice", scope)
		}
		out = append(out, scope)
	}
	return out, nil
}
