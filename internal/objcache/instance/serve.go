package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/access"
	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

const (
	// maxReads under way: each holds a block in memory, and a client that is refused
	// asks the store.
	maxReads = 128
	// maxForgets under way: deletes and evictions, of up to wire.MaxKeys keys each.
	maxForgets = 16
	// maxKeysBody holds wire.MaxKeys of the longest keys.
	maxKeysBody = 2 << 20
	// pieceTimeout is how long a client may take for a block, before its memory is wanted back.
	pieceTimeout = 30 * time.Second
)

// problem is RFC 9457's body with a stable code.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

// kinds is the table of errors on the wire: the first that matches counts.
var kinds = []struct {
	kind   error
	status int
	code   string
}{
	{ErrOtherBucket, http.StatusMisdirectedRequest, "other-bucket"},
	{ErrChanged, http.StatusConflict, "changed"},
	{errClosed, http.StatusServiceUnavailable, "closing"},
	{objstore.ErrNotFound, http.StatusNotFound, "not-found"},
	{objstore.ErrInvalid, http.StatusBadRequest, "invalid-request"},
	{objstore.ErrRange, http.StatusRequestedRangeNotSatisfiable, "range"},
	{objstore.ErrPrecondition, http.StatusPreconditionFailed, "precondition"},
	{objstore.ErrDenied, http.StatusBadGateway, "store-denied"},
	{objstore.ErrUnavailable, http.StatusServiceUnavailable, "store-unavailable"},
}

// Handler serves the cache.
func (c *Cache) Handler() http.Handler {
	reads, forgets := make(chan struct{}, maxReads), make(chan struct{}, maxForgets)
	mux := http.NewServeMux()
	guard := c.cfg.Guard
	mux.Handle("GET "+wire.PathObjects+"{key...}", guard(access.Read, admit(reads, c.serveRead)))
	mux.Handle("POST "+wire.PathDelete, guard(access.Admin, admit(forgets, c.serveDelete)))
	mux.Handle("POST "+wire.PathEvict, guard(access.Admin, admit(forgets, c.serveEvict)))
	mux.Handle("GET "+wire.PathStatus, guard(access.Read, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, c.Stats()) })))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]string{"status": "alive"}) })
	mux.HandleFunc("GET /readyz", c.serveReady)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, problem{Status: http.StatusNotFound, Code: "no-such-route", Title: "no such route", Detail: r.Method + " " + r.URL.Path})
	})
	return mux
}

// admit bounds the requests under way.
func admit(slots chan struct{}, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			fail(w, problem{Status: http.StatusServiceUnavailable, Code: "busy", Title: "too many requests under way"})
		}
	})
}

func (c *Cache) serveReady(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		refuse(w, errClosed)
		return
	}
	reply(w, map[string]string{"status": "ready"})
}

func (c *Cache) serveRead(w http.ResponseWriter, r *http.Request) {
	rng, err := rangeOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	rd, err := c.Read(r.Context(), r.Header.Get(wire.HeaderBucket), r.PathValue("key"), rng, strings.Trim(r.Header.Get("If-Match"), `"`))
	if err != nil {
		refuse(w, err)
		return
	}
	defer rd.Close()
	h := w.Header()
	h.Set("Content-Type", wire.FramesType)
	h.Set("Content-Length", strconv.FormatInt(wire.Length(rd.Off, rd.End), 10))
	h.Set(wire.HeaderObject, wire.EncodeObject(rd.Info))
	out, frames := http.NewResponseController(w), wire.Writer{W: w, Seed: wire.Seed(rd.Info.Key, rd.Info.ETag), Off: rd.Off}
	for {
		p, err := rd.Next(r.Context())
		if err != nil {
			// The head is out: a cut body sends the client to the store for the rest.
			panic(http.ErrAbortHandler)
		}
		if p == nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a writer without deadlines is a test's
		if _, err := frames.Write(p); err != nil {
			return // the client left
		}
	}
}

// rangeOf reads the range in the query: objstore.Range's own numbers.
func rangeOf(r *http.Request) (objstore.Range, error) {
	off, err1 := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	n, err2 := strconv.ParseInt(r.URL.Query().Get("length"), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return objstore.Range{}, fmt.Errorf("%w: offset and length: %w", objstore.ErrInvalid, err)
	}
	return objstore.Range{Offset: off, Length: n}, nil
}

func (c *Cache) serveDelete(w http.ResponseWriter, r *http.Request) {
	keys, err := keysOf(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	results, err := c.Delete(r.Context(), r.Header.Get(wire.HeaderBucket), keys)
	if err != nil {
		refuse(w, err)
		return
	}
	answer := wire.Fates{Fates: make([]wire.Fate, len(results))}
	for i, res := range results {
		answer.Fates[i] = wire.FateOf(res)
	}
	reply(w, answer)
}

func (c *Cache) serveEvict(w http.ResponseWriter, r *http.Request) {
	keys, err := keysOf(w, r)
	if err == nil {
		err = c.Evict(r.Header.Get(wire.HeaderBucket), keys)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, struct{}{})
}

func keysOf(w http.ResponseWriter, r *http.Request) ([]string, error) {
	var body wire.Keys
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxKeysBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return nil, fmt.Errorf("%w: the body: %w", objstore.ErrInvalid, err)
	}
	if len(body.Keys) == 0 || len(body.Keys) > wire.MaxKeys {
		return nil, fmt.Errorf("%w: %d keys: send 1 to %d", objstore.ErrInvalid, len(body.Keys), wire.MaxKeys)
	}
	return body.Keys, nil
}

func refuse(w http.ResponseWriter, err error) {
	p := problem{Status: http.StatusBadGateway, Code: "store-failed", Title: "the store failed", Detail: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			p.Status, p.Code, p.Title = k.status, k.code, k.kind.Error()
			break
		}
	}
	fail(w, p)
}

func fail(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that went away is not our fault
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away is not our fault
}
