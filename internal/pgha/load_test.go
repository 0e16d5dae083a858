//go:build unix

package pgha

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/httpapi"
)

// client appends numbered rows to one stream, a few a request, each acknowledged as shared.
// A number is sent once: one that was not acknowledged may be there or not.
type client struct {
	stream string
	url    string

	ended chan struct{}

	mu     sync.Mutex
	acked  map[int]uint64 // number -> seq
	failed int            // requests
}

const batchRows = 3

// run appends until ctx ends.
func (c *client) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n += batchRows {
		first, err := c.append(ctx, n)
		c.mu.Lock()
		for i := range batchRows {
			if err == nil {
				c.acked[n+i] = first + uint64(i)
			}
		}
		if err != nil {
			c.failed++
		}
		c.mu.Unlock()
		if err != nil {
			select { // refused at once while the catalog is away: a client comes again in a while
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

func (c *client) append(ctx context.Context, n int) (first uint64, err error) {
	var body bytes.Buffer
	for i := range batchRows {
		fmt.Fprintf(&body, "%s-%08d\n", c.stream, n+i)
	}
	// Its own time, not the test's end: whether a row was acknowledged is what counts.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/streams/"+c.stream+"/rows?ack=shared", &body)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s %w", resp.Status, text, err)
	}
	var got httpapi.Appended
	err = json.Unmarshal(text, &got)
	return uint64(got.First), err
}

func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked)
}

// load is the clients of a test.
type load struct {
	clients []*client
	stop    func()
}

// newLoad starts clients that append to a writer.
func newLoad(t *testing.T, url, name string, clients int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{}
	for i := range clients {
		c := &client{stream: fmt.Sprintf("%s-%d", name, i), url: url, acked: map[int]uint64{}, ended: make(chan struct{})}
		l.clients = append(l.clients, c)
		go func() { defer close(c.ended); c.run(ctx) }()
	}
	l.stop = func() {
		cancel()
		for _, c := range l.clients {
			<-c.ended
		}
	}
	t.Cleanup(l.stop)
	return l
}

// acked is the number of rows that were acknowledged.
func (l *load) acked() (n int) {
	for _, c := range l.clients {
		n += c.count()
	}
	return n
}

// failed is the number of requests that were not answered with success.
func (l *load) failed() (n int) {
	for _, c := range l.clients {
		c.mu.Lock()
		n += c.failed
		c.mu.Unlock()
	}
	return n
}

// ledgers are what every client was told so far.
func (l *load) ledgers() (out []*client) {
	for _, c := range l.clients {
		c.mu.Lock()
		out = append(out, &client{stream: c.stream, acked: maps.Clone(c.acked)})
		c.mu.Unlock()
	}
	return out
}

// line is a row as `cat --ndjson` and GET …/rows show it.
type line struct {
	Seq     uint64
	Payload string
	Error   json.RawMessage
}

// holds demands every acknowledged row once, in order, where it was acknowledged.
func (c *client) holds(t *testing.T, ndjson string) {
	t.Helper()
	number, seq, found := -1, uint64(0), 0
	for d := json.NewDecoder(strings.NewReader(ndjson)); ; {
		var l line
		if err := d.Decode(&l); err == io.EOF {
			break
		} else if err != nil || l.Error != nil {
			t.Fatalf("%s: %v %s", c.stream, err, l.Error)
		}
		n, err := strconv.Atoi(strings.TrimPrefix(l.Payload, c.stream+"-"))
		if err != nil || n <= number || l.Seq <= seq {
			t.Fatalf("%s: row %q at seq %d after number %d at seq %d (%v)", c.stream, l.Payload, l.Seq, number, seq, err)
		}
		number, seq = n, l.Seq
		if want, ok := c.acked[n]; ok {
			found++
			if want != seq {
				t.Fatalf("%s: row %d was acknowledged at seq %d and stands at %d", c.stream, n, want, seq)
			}
		}
	}
	if found != len(c.acked) {
		t.Fatalf("%s: %d of %d acknowledged rows are there", c.stream, found, len(c.acked))
	}
}
