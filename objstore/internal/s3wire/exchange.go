package s3wire

import (
	"context"
	"net/http"
	"sync"

	"github.com/strandline/strandline/objstore"
)

// documentOf is the root element that a success must carry; "" for operations whose
// success has no document.
func documentOf(op objstore.Op) string {
	switch op {
	case objstore.OpList:
		return "ListBucketResult"
	case objstore.OpDelete:
		return "DeleteResult"
	case objstore.OpCreateUpload:
		return "InitiateMultipartUploadResult"
	case objstore.OpCopyPart:
		return "CopyPartResult"
	case objstore.OpComplete:
		return "CompleteMultipartUploadResult"
	case objstore.OpListUploads:
		return "ListMultipartUploadsResult"
	default:
		return ""
	}
}

// Exchange is what one driver call saw on the wire. The call's goroutine reads it
// after the client library returned; the mutex is for the transport's trace hooks,
// which may run on another goroutine.
type Exchange struct {
	Op objstore.Op
	// Which condition the request carried: it decides what a 412 means.
	IfNoneMatch, IfMatch bool

	stop context.CancelFunc // ends the library's call once it has failed; nil: the library ends by itself

	mu        sync.Mutex
	signer    Signer // in the request's signature; stores quote it in messages
	plain     bool   // the request went without TLS
	attempted bool   // the request reached the transport
	connected bool   // a connection was had: from here on the request may have arrived
	status    int    // 0: no answer
	header    http.Header
	code      string // <Code> of an error document, also one inside a 200
	message   string
	requestID string
	document  []byte // the body of an answer that is a document
	bad       error  // an answer that is none: HTML, empty, cut
	silence   error  // why there is no answer, before a library put its words around it
	asked     bool   // newer credentials were asked for
	renewal   error  // why there are none
}

// NewExchange starts the record of one call and returns the context to make it with.
func NewExchange(ctx context.Context, op objstore.Op) (context.Context, *Exchange) {
	ex := &Exchange{Op: op}
	return context.WithValue(ctx, exchangeKey{}, ex), ex
}

// EndOnFailure makes a failure on the wire end the context that the library works with,
// by stop. minio-go sleeps up to 200 ms after its last attempt before it tells of the
// failure, and pauses are objstore.Store's business.
func (ex *Exchange) EndOnFailure(stop context.CancelFunc) { ex.stop = stop }

func (ex *Exchange) end() {
	if ex.stop != nil {
		ex.stop()
	}
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *Exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return ex
}

// Header is the header of the last answer, nil without one.
func (ex *Exchange) Header() http.Header {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.header
}

// Status is the status of the last answer, 0 without one.
func (ex *Exchange) Status() int {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.status
}

// Document is the body of the last answer, if it was a document.
func (ex *Exchange) Document() []byte {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.document
}

// begin forgets an earlier request of the same call (a listing that the client
// library continued by itself).
func (ex *Exchange) begin(req *http.Request) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.signer, ex.plain = signerOf(req), req.URL.Scheme == "http"
	ex.silence, ex.asked, ex.renewal = nil, false, nil
	ex.attempted, ex.connected, ex.status = true, false, 0
	ex.header, ex.document, ex.bad = nil, nil, nil
	ex.code, ex.message, ex.requestID = "", "", ""
}

func (ex *Exchange) gotConn() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.connected = true
}

func (ex *Exchange) failed(err error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.silence = err
}

func (ex *Exchange) answered(resp *http.Response) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.status, ex.header = resp.StatusCode, resp.Header
	ex.requestID = resp.Header.Get("X-Amz-Request-Id")
	// MinIO names the code of a HEAD's error in a header: a HEAD has no body.
	ex.code = resp.Header.Get("X-Minio-Error-Code")
}

func (ex *Exchange) refused(doc errorDocument) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.code, ex.message = doc.Code, ex.discreet(doc.Message)
	if doc.RequestID != "" {
		ex.requestID = doc.RequestID
	}
}

func (ex *Exchange) keep(document []byte) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.document = document
}

func (ex *Exchange) notAnAnswer(err error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.bad = err
}

// discreet takes the access key and the session token out of a store's message.
func (ex *Exchange) discreet(message string) string { return ex.signer.strike(message) }
