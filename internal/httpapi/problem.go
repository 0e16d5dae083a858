package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/access"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// problem is RFC 9457's body with a stable code.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
	// Owner is where the stream's shard is served (code not-owner).
	Owner string `json:"owner,omitempty"`
	// First is the first seq that remains (codes trimmed and deleted; lost, where an operator
	// accepted the loss), and From the same as a read's from takes it, with its epoch.
	First *segment.Seq `json:"first,omitempty"`
	From  string       `json:"from,omitempty"`
	// Forked is the first seq that is not the token's history (code forked).
	Forked *segment.Seq `json:"forked,omitempty"`
	// Expect is the sequence that the producer has to go on with (code sequence).
	Expect *uint64 `json:"expect,omitempty"`
	// Durable are the rows of a refused append that are there all the same (codes disk-full and
	// backpressure, of an append without a producer and a key).
	Durable *durable `json:"durable,omitempty"`
	// RequestID is the answer's X-Request-Id.
	RequestID string `json:"request_id,omitempty"`
}

// durable are the first rows of an append, and where they stand.
type durable struct {
	Rows  int           `json:"rows"`
	Epoch segment.Epoch `json:"epoch"`
	First segment.Seq   `json:"first"`
	Last  segment.Seq   `json:"last"`
}

// kinds is the table of errors on the wire: the first that matches counts. Codes are
// part of the interface and never change.
var kinds = []struct {
	kind   error
	status int
	code   string
}{
	{access.ErrRevoked, http.StatusUnauthorized, "unauthenticated"},
	{errBusy, http.StatusServiceUnavailable, "busy"},
	{errStopping, http.StatusServiceUnavailable, "closing"},
	{errBodyTime, http.StatusRequestTimeout, "request-timeout"},
	{errEncoding, http.StatusUnsupportedMediaType, "unsupported-encoding"},
	{errMedia, http.StatusUnsupportedMediaType, "unsupported-media-type"},
	{errAccept, http.StatusNotAcceptable, "not-acceptable"},
	{errNoTrimmer, http.StatusNotImplemented, "read-only"},
	{errReadOnly, http.StatusNotImplemented, "read-only"},
	{errKeyReused, http.StatusConflict, "idempotency-key-reused"},
	{errChainEnded, http.StatusGone, "chain-ended"},
	{segment.ErrName, http.StatusBadRequest, "invalid-name"},
	{errBadRequest, http.StatusBadRequest, "invalid-request"},
	{localtier.ErrInvalid, http.StatusBadRequest, "invalid-request"},
	{catalog.ErrNoPosition, http.StatusBadRequest, "invalid-request"},
	{errTooManyRows, http.StatusRequestEntityTooLarge, "too-large"},
	{localtier.ErrTooLarge, http.StatusRequestEntityTooLarge, "too-large"},
	{segment.ErrTooLarge, http.StatusRequestEntityTooLarge, "too-large"},
	{localtier.ErrNotOwner, http.StatusMisdirectedRequest, "not-owner"},
	{errEpochOver, http.StatusServiceUnavailable, "epoch-over"},
	{localtier.ErrDiskFull, http.StatusInsufficientStorage, "disk-full"},
	{localtier.ErrBackpressure, http.StatusServiceUnavailable, "backpressure"},
	{wal.ErrBackpressure, http.StatusServiceUnavailable, "backpressure"},
	{localtier.ErrFenced, http.StatusServiceUnavailable, "fenced"},
	{localtier.ErrLeaseLost, http.StatusServiceUnavailable, "lease-lost"},
	{localtier.ErrClosed, http.StatusServiceUnavailable, "closing"},
	{wal.ErrClosed, http.StatusServiceUnavailable, "closing"},
	{wal.ErrPoisoned, http.StatusServiceUnavailable, "poisoned"},
	{localtier.ErrHalted, http.StatusServiceUnavailable, "halted"},
	{localtier.ErrChainClosed, http.StatusServiceUnavailable, "chain-closed"},
	{localtier.ErrRolledBack, http.StatusServiceUnavailable, "rolled-back"},
	{wal.ErrFull, http.StatusInsufficientStorage, "disk-full"},
	{localtier.ErrSequence, http.StatusConflict, "sequence"},
	{localtier.ErrNoConsumer, http.StatusNotFound, "no-such-consumer"},
	{localtier.ErrTooManyConsumers, http.StatusConflict, "too-many-consumers"},
	{catalog.ErrForked, http.StatusConflict, "forked"},
	{coldload.ErrTrimmed, http.StatusGone, "trimmed"},
	{coldload.ErrDeleted, http.StatusGone, "deleted"},
	{coldload.ErrLost, http.StatusInternalServerError, "lost"},
	{coldload.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{segment.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{catalog.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{check.ErrNothing, http.StatusNotFound, "nothing-to-explain"},
	{catalog.ErrNotFound, http.StatusNotFound, "no-such-stream"},
	{catalog.ErrBeyondTip, http.StatusConflict, "beyond-tip"},
	{catalog.ErrUnavailable, http.StatusServiceUnavailable, "catalog-unavailable"},
	{catalog.ErrAmbiguous, http.StatusServiceUnavailable, "catalog-unavailable"},
	{catalog.ErrNoSpace, http.StatusInsufficientStorage, "disk-full"},
	{objstore.ErrDenied, http.StatusInternalServerError, "store-denied"},
	{objstore.ErrUnavailable, http.StatusServiceUnavailable, "store-unavailable"},
	{objstore.ErrShort, http.StatusServiceUnavailable, "store-unavailable"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout"},
	{context.Canceled, http.StatusServiceUnavailable, "cancelled"},
}

// The faults that this package finds itself.
var (
	errBadRequest  = errors.New("bad request")
	errTooManyRows = errors.New("too many rows")
	errEpochOver   = errors.New("the epoch is over")
	errMedia       = errors.New("this content type is not taken here")
	errAccept      = errors.New("the answer has none of the types that are accepted")
	errStopping    = errors.New("this process is stopping")
	errChainEnded  = errors.New("the chain is closed and all of its rows were sent")
)

// problemOf maps an error onto its answer.
func problemOf(err error) problem {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return problem{
			Status: http.StatusRequestEntityTooLarge, Code: "too-large", Title: "body too large",
			Detail: "a request holds at most " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes; send the rows in several",
		}
	}
	p := problem{Status: http.StatusInternalServerError, Code: "internal", Title: "internal error", Detail: err.Error()}
	var over *localtier.EpochError
	if errors.As(err, &over) {
		err = errors.Join(errEpochOver, err)
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			p.Status, p.Code, p.Title = k.status, k.code, k.kind.Error()
			break
		}
	}
	var notOwner *localtier.NotOwnerError
	if errors.As(err, &notOwner) {
		p.Owner = notOwner.Owner
	}
	var forked *catalog.ForkedError
	if errors.As(err, &forked) {
		p.Forked = &forked.Forked
	}
	var sequence *localtier.SequenceError
	if errors.As(err, &sequence) {
		p.Expect = &sequence.Expect
	}
	var half *localtier.PartialError
	if errors.As(err, &half) {
		p.Durable = &durable{half.Durable, half.Epoch, half.First, half.Last}
	}
	if left := firstLeft(err); left != (segment.Pos{}) {
		p.First, p.From = &left.Seq, left.String()
	}
	return p
}

// firstLeft is the first position that remains, if what was asked for was given up: by a
// trim, or as lost. Zero: it was not.
func firstLeft(err error) segment.Pos {
	var read *coldload.ReadError
	var scan *coldload.ScanError
	switch {
	case errors.As(err, &read):
		return read.First
	case errors.As(err, &scan) && scan.First != 0:
		return segment.Pos{Epoch: scan.Chain.Epoch, Seq: scan.First}
	}
	return segment.Pos{}
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	s.log(w, r, p, err)
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		w.Header().Set("Retry-After", retryAfter(err))
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close") // the rest of the body may still come
	}
	if errors.Is(err, errEncoding) {
		w.Header().Set("Accept-Encoding", encodings)
	}
	writeProblem(w, p)
}

// log tells an operator what is nobody else's to mend. A client that went away is no fault.
func (s *server) log(w http.ResponseWriter, r *http.Request, p problem, err error) {
	if p.Status == http.StatusInternalServerError && r.Context().Err() == nil {
		s.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", requestID(w), "code", p.Code, "err", err)
	}
}

func retryAfter(err error) string {
	after := time.Second
	var b *localtier.BackpressureError
	if errors.As(err, &b) {
		after = max(after, b.RetryAfter)
	}
	var over *localtier.EpochError
	if errors.As(err, &over) {
		after = max(after, over.RetryAfter)
	}
	return strconv.Itoa(int((after + time.Second - 1) / time.Second))
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.RequestID = requestID(w)
	text, err := json.Marshal(p)
	if err != nil { // strings and numbers only
		panic(err)
	}
	text = append(text, '\n')
	w.Header().Set("Content-Type", "application/problem+json")
	// Whole as soon as it is flushed: a sender that is let come to it (linger) waits for no more.
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // a client that went away is not our fault
}
