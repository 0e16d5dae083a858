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
}

func newOutlet(w http.ResponseWriter, events bool) *outlet {
	return &outlet{rowWriter: newRowWriter(w), events: events, last: time.Now()}
}

// begin sends the header: the request is served, whether there are rows yet or not.
func (o *outlet) begin() error {
	if o.begun {
		return nil
	}
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
	return o.push()
}

func (o *outlet) row(row *coldload.ShardRow, tok segment.Token) error {
	if !o.begun {
		if err := o.begin(); err != nil {
			return err
		}
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
	if len(o.buf) < outletBytes {
		return nil
	}
	return o.flush()
}

// flush sends what is gathered on its way.
func (o *outlet) flush() error {
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
