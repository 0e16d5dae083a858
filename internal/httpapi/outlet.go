package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// outletBytes are gathered before they are written.
const outletBytes = 32 << 10

// rowWriter writes an answer of rows: what one client holds is outletBytes and the row
// that does not fit any more, and a client that takes nothing for writeTime is gone.
type rowWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	gone    bool
}

func newRowWriter(w http.ResponseWriter) rowWriter {
	return rowWriter{w: w, control: http.NewResponseController(w)}
}

// full writes once enough is gathered.
func (o *rowWriter) full() error {
	if len(o.buf) < outletBytes {
		return nil
	}
	return o.write()
}

func (o *rowWriter) write() error {
	if len(o.buf) == 0 {
		return nil
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTime)) // a test's recorder has none
	_, err := o.w.Write(o.buf)
	if o.buf = o.buf[:0]; cap(o.buf) > 4*outletBytes {
		o.buf = nil // one large row is no reason to keep as much
	}
	o.gone = o.gone || err != nil
	return err
}

// errorLine is a body's last, if it could not be completed.
func errorLine(p problem) []byte {
	b, err := json.Marshal(map[string]problem{"error": p})
	if err != nil { // strings and numbers only
		panic(err)
	}
	return b
}

// outlet is where a follower's rows go: NDJSON, or server-sent events.
type outlet struct {
	rowWriter
	events bool
	begun  bool
	last   time.Time // of the last write
	// patience is how long row may still wait for the client; zero: until it takes, or
	// writeTime. A write that passes it goes on in under, and the outlet is late until join.
	patience time.Duration
	under    chan error
}

func newOutlet(w http.ResponseWriter, events bool) *outlet {
	return &outlet{rowWriter: newRowWriter(w), events: events, last: time.Now()}
}

// begin sends the header: the request is served, whether there are rows yet or not.
func (o *outlet) begin() error {
	if o.begun {
		return nil
	}
	o.head()
	return o.push()
}

// head makes the header ready: it goes with what is pushed first.
func (o *outlet) head() {
	o.begun = true
	kind := ndjsonType
	if o.events {
		kind = eventsType
	}
	h := o.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers shows nothing for a long time
	o.w.WriteHeader(http.StatusOK)
}

func (o *outlet) row(row *coldload.ShardRow, tok segment.Token) error {
	if !o.begun {
		o.head()
	}
	token := tok.String()
	if o.events {
		o.buf = append(o.buf, "id: "...)
		o.buf = append(o.buf, token...)
		o.buf = append(o.buf, "\nevent: row\ndata: "...)
	}
	o.buf = appendLine(o.buf, row, token)
	if o.events {
		o.buf = append(o.buf, '\n')
	}
	switch {
	case len(o.buf) < outletBytes:
		return nil
	case o.patience > 0:
		return o.pushWithin()
	}
	return o.flush()
}

// pushWithin is push, for no longer than patience, of which it takes what it took.
func (o *outlet) pushWithin() error {
	began := time.Now()
	under := make(chan error, 1)
	go func() { under <- o.push() }() // join waits for it
	late := time.NewTimer(o.patience)
	defer late.Stop()
	select {
	case err := <-under:
		o.patience = max(o.patience-time.Since(began), 1)
		return err
	case <-late.C:
		o.under = under
		return nil
	}
}

// late says that a write is under way still: no row is taken until join.
func (o *outlet) late() bool { return o.under != nil }

// join waits for the write that is under way, if one is, which the client has writeTime for.
func (o *outlet) join() error {
	o.patience = 0
	if o.under == nil {
		return nil
	}
	err := <-o.under
	o.under = nil
	return err
}

// flush sends what is gathered on its way.
func (o *outlet) flush() error {
	if err := o.join(); err != nil {
		return err
	}
	if len(o.buf) == 0 {
		return nil
	}
	return o.push()
}

func (o *outlet) push() error {
	if err := o.write(); err != nil {
		return err
	}
	o.last = time.Now()
	_ = o.control.SetWriteDeadline(o.last.Add(writeTime)) // a test's recorder has none
	err := o.control.Flush()
	o.gone = o.gone || err != nil
	return err
}

func (o *outlet) beatAt() time.Time { return o.last.Add(beatEvery) }

// beat says that the server is there.
func (o *outlet) beat() error {
	if err := o.begin(); err != nil {
		return err
	}
	if o.events {
		o.buf = append(o.buf, ": alive\n\n"...)
	} else {
		o.buf = append(o.buf, '\n')
	}
	return o.push()
}

// fail ends the answer with why it goes on no more.
func (o *outlet) fail(p problem) {
	_ = o.join() // the client may be gone
	p.RequestID = requestID(o.w)
	if o.events {
		o.buf = append(o.buf, "event: error\ndata: "...)
	}
	o.buf = append(append(o.buf, errorLine(p)...), '\n')
	if o.events {
		o.buf = append(o.buf, '\n')
	}
	_ = o.push() // the client may be gone
}
