package otlp

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The two forms of OTLP/HTTP; an answer has its request's.
const (
	asProtobuf = "application/x-protobuf"
	asJSON     = "application/json"
)

// ServeHTTP is POST /v1/logs.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	form, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, asJSON, &refusal{http.StatusMethodNotAllowed, "POST logs here"})
		return
	}
	if err != nil || form != asProtobuf && form != asJSON {
		fail(w, asJSON, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("content type %.100q: give %s or %s",
			req.Header.Get("Content-Type"), asProtobuf, asJSON)})
		return
	}
	mine := r.share()
	defer mine.release()
	no, err := r.serve(w, req, form, mine)
	if err != nil {
		fail(w, form, err)
		return
	}
	out := answer(no)
	var body []byte
	if form == asJSON {
		body, err = out.MarshalJSON()
	} else {
		body, err = out.MarshalProto()
	}
	if err != nil {
		fail(w, form, err)
		return
	}
	reply(w, form, http.StatusOK, body)
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request, form string, mine *share) (rejected, error) {
	body, err := readBody(w, req, mine)
	if err == nil && form == asJSON {
		body, err = decodeJSON(body, mine)
	}
	if err != nil {
		r.end(req.Context(), 0, rejected{}, err)
		return rejected{}, err
	}
	return r.take(req.Context(), body, mine)
}

// fail answers with google.rpc.Status in the request's form.
func fail(w http.ResponseWriter, form string, err error) {
	v := verdictOf(err)
	st := v.status().Proto()
	var body []byte
	if form == asJSON {
		body, err = protojson.Marshal(st)
	} else {
		body, err = proto.Marshal(st)
	}
	if err != nil {
		body = nil // the code says what to do
	}
	switch {
	case v.after > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int((v.after+time.Second-1)/time.Second)))
	case v.http == http.StatusUnsupportedMediaType:
		w.Header().Set("Accept-Encoding", "gzip, zstd")
	}
	reply(w, form, v.http, body)
}

func reply(w http.ResponseWriter, form string, code int, body []byte) {
	w.Header().Set("Content-Type", form)
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // not that of a problem which InForm turned into this
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that went away is not our fault
}
