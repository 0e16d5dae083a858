package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/strandline/strandline/segment"
)

// Position is a position as streams are listed with it.
type Position struct {
	Epoch segment.Epoch `json:"epoch"`
	Seq   segment.Seq   `json:"seq"`
}

// Stream is a stream as the catalog knows it.
type Stream struct {
	Name     string    `json:"stream"`
	LiveFrom Position  `json:"live_from"` // the first position that no trim gave up
	Last     Position  `json:"last"`      // the last row that is absorbed
	Deleted  bool      `json:"deleted"`
	Created  time.Time `json:"created"`
}

// Trimmed is what a trim or a deletion left.
type Trimmed struct {
	Stream   string   `json:"stream"`
	Deleted  bool     `json:"deleted,omitempty"`
	LiveFrom Position `json:"live_from"`
}

// pageOfStreams is how many are asked for at once.
const pageOfStreams = 1000

// Streams yields the streams whose name begins with prefix, by name. The last pair carries an
// error if the list is not whole.
func (c *Client) Streams(ctx context.Context, prefix string) iter.Seq2[Stream, error] {
	return func(yield func(Stream, error) bool) {
		after := ""
		for {
			page, err := c.streamsPage(ctx, prefix, after)
			if err != nil {
				yield(Stream{}, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) < pageOfStreams {
				return
			}
			after = page[len(page)-1].Name
		}
	}
}

// streamsPage is a document: small, and asked for again as a whole.
func (c *Client) streamsPage(ctx context.Context, prefix, after string) ([]Stream, error) {
	q := &call{
		op: "list streams", method: http.MethodGet, path: "/v1/streams", place: anywhere, repeat: true,
		query: url.Values{"limit": {strconv.Itoa(pageOfStreams)}},
	}
	if prefix != "" {
		q.query.Set("prefix", prefix)
	}
	if after != "" {
		q.query.Set("after", after)
	}
	a, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	var page []Stream
	d := json.NewDecoder(bytes.NewReader(a.body))
	for {
		var line struct {
			Stream
			Error json.RawMessage `json:"error"`
		}
		switch err := d.Decode(&line); {
		case err == io.EOF:
			return page, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w: %w", q.op, ErrAnswer, err)
		case line.Error != nil:
			return nil, fmt.Errorf("%s: %w", q.op, problemOf(a.server, statusIn(line.Error), a.header, line.Error))
		case line.Name <= after:
			return nil, fmt.Errorf("%s: %w: stream %q after %q", q.op, ErrOrder, line.Name, after)
		}
		after = line.Name
		page = append(page, line.Stream)
	}
}

// Trim gives up a stream's rows below a position (a seq, EPOCH.SEQ or a token): readers skip them
// once it returns, the auditor deletes their bytes after the graces. ErrBeyondTip: the position is
// above what is absorbed.
func (c *Client) Trim(ctx context.Context, stream, below string) (Trimmed, error) {
	q := &call{
		op: "trim " + strconv.Quote(stream), method: http.MethodPost, path: "/v1/streams/" + segmentOf(stream) + "/trim",
		place: appendsOf(stream), repeat: true, header: http.Header{"Content-Type": {"application/json"}},
	}
	var err error
	if q.body, err = json.Marshal(map[string]string{"below": below}); err != nil {
		return Trimmed{}, fmt.Errorf("%s: %w", q.op, err)
	}
	return document[Trimmed](ctx, c, q)
}

// Delete trims a stream through its tip. Its name goes on above if it is appended to again. It is
// sent once: ErrUnknown if the answer is lost, since by then there may be new rows.
func (c *Client) Delete(ctx context.Context, stream string) (Trimmed, error) {
	return document[Trimmed](ctx, c, &call{
		op: "delete " + strconv.Quote(stream), method: http.MethodDelete, path: "/v1/streams/" + segmentOf(stream),
		place: appendsOf(stream),
	})
}
