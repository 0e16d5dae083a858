package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/strandline/strandline/internal/filewatch"
)

// Tokens are those of a file, as it is now. They are safe for concurrent use. Close them.
type Tokens struct {
	path  string
	log   *slog.Logger
	watch *filewatch.Watcher
	set   atomic.Pointer[[]Entry]
	stats stats

	// Only the watcher's one call at a time touches these.
	text   []byte // the file that was last looked at, sound or not
	broken error  // why it is not in force; nil: it is
	said   time.Time

	mu       sync.Mutex
	sessions map[*session]struct{} // answers under way, each ended when its token is revoked

	refusals *rate.Limiter // log lines about refusals
	unsaid   atomic.Int64  // refusals since the last such line
}

// brokenEvery is how often a broken file is complained about.
const brokenEvery = time.Minute

// A refusal costs a caller nothing, and must not fill the disk with log lines.
const (
	refusalsASecond = 1
	refusalsAtOnce  = 10
)

// Open reads the file and follows its changes.
func Open(path string, log *slog.Logger) (*Tokens, error) {
	t, err := load(path, log)
	if err != nil {
		return nil, err
	}
	t.watch, err = filewatch.Start([]string{path}, t.reload)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// load is Open without the watcher.
func load(path string, log *slog.Logger) (*Tokens, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	entries, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	t := &Tokens{
		path: path, log: log, text: text, sessions: map[*session]struct{}{},
		refusals: rate.NewLimiter(refusalsASecond, refusalsAtOnce),
	}
	t.set.Store(&entries)
	return t, nil
}

// Close ends the watch. Requests are still decided, by the file as it was last.
func (t *Tokens) Close() error { return t.watch.Close() }

// reload puts a changed file in force, whole, or complains and keeps the old one: a file
// that cannot be read must neither let anybody in nor lock everybody out.
func (t *Tokens) reload() {
	text, err := readFile(t.path)
	if err == nil && t.broken == nil && bytes.Equal(text, t.text) {
		return
	}
	var entries []Entry
	if err == nil {
		entries, err = parse(text)
	}
	if err != nil {
		t.complain(err, text)
		return
	}
	t.text, t.broken = text, nil
	t.stats.broken.Store(false)
	t.stats.reloads.Add(1)
	t.set.Store(&entries)
	ended := t.revoke()
	t.log.Info("token file read again", "file", t.path, "tokens", len(entries), "ended", ended)
}

func (t *Tokens) complain(err error, text []byte) {
	if t.broken != nil && bytes.Equal(text, t.text) && time.Since(t.said) < brokenEvery {
		return
	}
	if t.broken == nil || !bytes.Equal(text, t.text) {
		t.stats.failures.Add(1)
	}
	t.text, t.broken, t.said = text, err, time.Now()
	t.stats.broken.Store(true)
	t.log.Error("THE TOKEN FILE IS BROKEN: the tokens of the last sound one stay in force, revoked ones too; mend it", "file", t.path, "error", err)
}

// find is the entry of a presented token; nil: there is none. It looks at every entry, in
// the same time whether and where one is equal: what an attacker could learn from time is
// about the hash of what they sent, and this does not even give that.
func find(entries []Entry, token string) *Entry {
	sum := sha256.Sum256([]byte(token))
	at := 0
	for i := range entries {
		equal := subtle.ConstantTimeCompare(entries[i].Hash[:], sum[:])
		at = subtle.ConstantTimeSelect(equal, i+1, at)
	}
	if at == 0 {
		return nil
	}
	return &entries[at-1]
}

// verdict is what is decided about a request. The zero value grants nothing.
type verdict int

const (
	undecided verdict = iota // never served
	granted
	missing   // no credentials
	malformed // not one Authorization: Bearer TOKEN
	unknown
	lacking // the token is known, and has not the scope
)

// reasons are the verdicts' words in logs and counters.
var reasons = map[verdict]string{missing: "no token", malformed: "no bearer token", unknown: "unknown token", lacking: "scope"}

// decide looks at the values of the Authorization header.
func (t *Tokens) decide(scope string, headers []string) (verdict, *Entry) {
	if len(headers) == 0 {
		return missing, nil
	}
	token, ok := bearer(headers)
	if !ok {
		return malformed, nil
	}
	e := find(*t.set.Load(), token)
	switch {
	case e == nil:
		return unknown, nil
	case !slices.Contains(e.Scopes, scope):
		return lacking, e
	default:
		return granted, e
	}
}

// bearer is the token of exactly one header: of two, a proxy may have looked at the other.
func bearer(headers []string) (string, bool) {
	const scheme = "bearer "
	if len(headers) != 1 || len(headers[0]) <= len(scheme) || len(headers[0]) > len(scheme)+mostToken {
		return "", false
	}
	head, token := headers[0][:len(scheme)], headers[0][len(scheme):]
	if !asciiEqualFold(head, scheme) || checkToken(token) != nil {
		return "", false
	}
	return token, true
}

// asciiEqualFold: strings.EqualFold would also take letters of other alphabets.
func asciiEqualFold(a, lower string) bool {
	for i := range len(lower) {
		c := a[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// Stats counts decisions and reloads since Open.
type Stats struct {
	Tokens         int   // in force
	Granted        int64 // requests
	Unauthorized   int64 // without a token that is known
	Forbidden      int64 // without the scope
	Revoked        int64 // answers that were ended since their token was revoked
	Reloads        int64
	ReloadFailures int64
	Broken         bool // the file on disk is not what is in force
}

type stats struct {
	granted, unauthorized, forbidden, revoked, reloads, failures atomic.Int64
	broken                                                       atomic.Bool
}

// Stats is a snapshot.
func (t *Tokens) Stats() Stats {
	return Stats{
		Tokens: len(*t.set.Load()), Granted: t.stats.granted.Load(), Unauthorized: t.stats.unauthorized.Load(), Forbidden: t.stats.forbidden.Load(),
		Revoked: t.stats.revoked.Load(), Reloads: t.stats.reloads.Load(), ReloadFailures: t.stats.failures.Load(), Broken: t.stats.broken.Load(),
	}
}
