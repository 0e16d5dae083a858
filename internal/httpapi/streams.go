package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Position is a position for machines.
type Position struct {
	Epoch segment.Epoch `json:"epoch"`
	Seq   segment.Seq   `json:"seq"`
}

// StreamOut is a stream as listed.
type StreamOut struct {
	Stream   string    `json:"stream"`
	LiveFrom Position  `json:"live_from"`
	Last     Position  `json:"last"` // absorbed
	Deleted  bool      `json:"deleted"`
	Created  time.Time `json:"created"`
}

// Trimmed is the answer to a trim and to a delete.
type Trimmed struct {
	Stream   string   `json:"stream"`
	LiveFrom Position `json:"live_from"`
	Deleted  bool     `json:"deleted,omitempty"`
}

// Limits of a list.
const (
	defaultList = 1000
	// MaxList streams of one answer; after= goes on behind the last.
	MaxList     = 10_000
	listPage    = 1000
	maxTrimBody = 4 << 10
)

// list streams the names that begin with ?prefix= and come behind ?after=, in order.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := limitOf(q.Get("limit"), defaultList, MaxList)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var lines [][]byte
	err = s.eachStream(r.Context(), q.Get("prefix"), q.Get("after"), func(st *catalog.Stream) (bool, error) {
		line, err := json.Marshal(StreamOut{
			Stream: st.Name, LiveFrom: Position(st.LiveFrom), Last: Position(st.Last), Deleted: st.Deleted, Created: st.Created.UTC(),
		})
		lines = append(lines, line)
		return len(lines) < limit, err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", ndjsonType)
	w.WriteHeader(http.StatusOK)
	out := newRowWriter(w)
	for _, line := range lines {
		out.buf = append(append(out.buf, line...), '\n')
		if out.full() != nil {
			return // the client is gone
		}
	}
	_ = out.write() // likewise
}

func limitOf(text string, standard, most int) (int, error) {
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%w: limit=%q: give 1 to %d", errBadRequest, text, most)
	}
	return n, nil
}

// eachStream pages through the names. The catalog lists what comes behind a name, so the
// prefix itself, which may be one, is looked up.
func (s *server) eachStream(ctx context.Context, prefix, after string, f func(*catalog.Stream) (more bool, err error)) error {
	if after < prefix {
		after = prefix
		if prefix != "" {
			st, err := s.Catalog.Stream(ctx, prefix)
			if err == nil {
				var more bool
				if more, err = f(&st); err == nil && !more {
					return nil
				}
			}
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				return err
			}
		}
	}
	for {
		page, err := s.Catalog.Streams(ctx, after, listPage)
		if err != nil {
			return err
		}
		for i := range page {
			if !strings.HasPrefix(page[i].Name, prefix) {
				return nil
			}
			if more, err := f(&page[i]); err != nil || !more {
				return err
			}
			after = page[i].Name
		}
		if len(page) < listPage {
			return nil
		}
	}
}

// trim gives up a stream's rows below a position.
func (s *server) trim(w http.ResponseWriter, r *http.Request) {
	st, err := s.trimmed(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, Trimmed{Stream: st.Name, LiveFrom: Position(st.LiveFrom)})
}

func (s *server) trimmed(w http.ResponseWriter, r *http.Request) (st catalog.Stream, err error) {
	stream := r.PathValue("stream")
	if err := s.mayTrim(r.Context(), stream); err != nil {
		return st, err
	}
	below, err := belowOf(w, r)
	if err != nil {
		return st, err
	}
	pos, tok, err := positionOf("below", below, s.Epoch)
	if err == nil && tok != nil {
		err = s.Reader.Check(r.Context(), stream, *tok)
	}
	if err != nil {
		return st, err
	}
	st, err = s.Trimmer.TrimStream(r.Context(), stream, pos)
	if !errors.Is(err, catalog.ErrBeyondTip) && !errors.Is(err, catalog.ErrNotFound) {
		return st, err
	}
	// What was appended just now is not absorbed yet: its owner makes it so.
	if flushed, flushErr := s.flushed(r.Context(), stream); flushErr != nil || !flushed {
		return st, errors.Join(flushErr, err)
	}
	return s.Trimmer.TrimStream(r.Context(), stream, pos)
}

// errNoTrimmer: this process only reads, and nobody is known who owns the stream's shard.
var errNoTrimmer = errors.New("this process gives up no rows; ask a writer")

func (s *server) mayTrim(ctx context.Context, stream string) error {
	if err := segment.CheckStream(stream); err != nil || s.Trimmer != nil {
		return err
	}
	return cmp.Or(s.servedElsewhere(ctx, stream), errNoTrimmer)
}

// belowOf reads {"below": "SEQ or TOKEN"}; a bare number will do.
func belowOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var in struct {
		Below json.RawMessage `json:"below"`
	}
	const want = `give {"below": "SEQ or TOKEN"}, the first position that stays`
	if err := decodeBody(w, r, maxTrimBody, &in); err != nil {
		return "", fmt.Errorf("%w; %s", err, want)
	}
	text := string(in.Below)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(in.Below, &text); err != nil {
			return "", fmt.Errorf("%w: %w; %s", errBadRequest, err, want)
		}
	}
	if text == "" || text == "null" {
		return "", fmt.Errorf("%w: %s", errBadRequest, want)
	}
	return text, nil
}

// decodeBody reads a small document with no members but those of to.
func decodeBody(w http.ResponseWriter, r *http.Request, most int64, to any) error {
	if err := mustBeJSON(r.Header); err != nil {
		return err
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%w: read the body: %w", errBadRequest, err)
	}
	if d.More() {
		return fmt.Errorf("%w: read the body: something stands behind the document", errBadRequest)
	}
	return nil
}

// flushed makes what the stream's owner acknowledged absorbed, if that owner is here.
func (s *server) flushed(ctx context.Context, stream string) (bool, error) {
	src := streamSource{server: s, name: stream}
	t := src.owner()
	if t == nil {
		return false, nil
	}
	return true, t.writer.Flush(ctx)
}

// remove is flush, then trim through the tip, then listed as deleted. Another process's
// rows that are not absorbed yet can only be flushed there.
func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	st, err := s.removed(r.Context(), r.PathValue("stream"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, Trimmed{Stream: st.Name, LiveFrom: Position(st.LiveFrom), Deleted: true})
}

func (s *server) removed(ctx context.Context, stream string) (st catalog.Stream, err error) {
	if err := s.mayTrim(ctx, stream); err != nil {
		return st, err
	}
	here, err := s.flushed(ctx, stream)
	if err != nil {
		return st, fmt.Errorf("delete %q: flush it first: %w", stream, err)
	}
	if !here {
		if err := s.servedElsewhere(ctx, stream); err != nil {
			return st, err
		}
	}
	return s.Trimmer.DeleteStream(ctx, stream)
}

// servedElsewhere is the owner's address while another process serves the stream. Nobody's
// rows are left to flush where there is none.
func (s *server) servedElsewhere(ctx context.Context, stream string) error {
	n, err := s.shardsOf(ctx, s.Epoch)
	if err != nil || n == 0 {
		return err
	}
	c := segment.Chain{Epoch: s.Epoch, Shard: segment.ShardOf(stream, n)}
	row, err := s.Catalog.Chain(ctx, c)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	case err != nil:
		return err
	case row.Closed || row.Address == "" || row.LeaseEnd.Before(time.Now()):
		return nil
	}
	return &localtier.NotOwnerError{Stream: stream, Shard: c.Shard, Owner: row.Address}
}
