package s3wire

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// RangeHeader writes a range as HTTP does; "" for the whole object.
func RangeHeader(r objstore.Range) (string, error) {
	switch {
	case r.Offset < 0:
		return fmt.Sprintf("bytes=%d", r.Offset), nil
	case r == objstore.Whole || r == (objstore.Range{}):
		return "", nil
	case r.Length < 0:
		return fmt.Sprintf("bytes=%d-", r.Offset), nil
	case r.Length == 0:
		// HTTP cannot say it: "bytes=5-4" is a whole object to some stores.
		return "", &objstore.Error{Op: string(objstore.OpGet), Kind: objstore.ErrRange, Err: fmt.Errorf("range at %d of no bytes", r.Offset)}
	default:
		return fmt.Sprintf("bytes=%d-%d", r.Offset, r.Offset+r.Length-1), nil
	}
}

// Extent is what an answer to a read holds: Length bytes from Offset of an object of
// Total.
type Extent struct {
	Offset, Length, Total int64
}

// ReadExtent works out what a successful answer holds, and refuses an answer that
// is not the range asked for. Stores differ: an empty object's suffix is answered
// with "bytes 0--1/0", or with a plain 200.
func ReadExtent(h http.Header, status int, r objstore.Range) (Extent, error) {
	var e Extent
	length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || length < 0 {
		return e, fmt.Errorf("the answer does not say its length")
	}
	e = Extent{Offset: 0, Length: length, Total: length}
	if cr := h.Get("Content-Range"); cr != "" && status == http.StatusPartialContent {
		if e, err = parseContentRange(cr); err != nil {
			return e, err
		}
		if e.Length != length {
			return e, fmt.Errorf("the answer holds %d bytes and says %q", length, cr)
		}
	}
	off, n, err := r.Resolve(e.Total)
	if err != nil || off != e.Offset || n != e.Length {
		return e, fmt.Errorf("asked for %+v of %d bytes, the answer holds %d at %d", r, e.Total, e.Length, e.Offset)
	}
	return e, nil
}

// parseContentRange reads "bytes first-last/total".
func parseContentRange(s string) (Extent, error) {
	bad := fmt.Errorf("content range %q: want bytes FIRST-LAST/TOTAL", s)
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, totalText, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return Extent{}, bad
	}
	total, err := strconv.ParseInt(totalText, 10, 64)
	if err != nil || total < 0 {
		return Extent{}, bad
	}
	if total == 0 {
		return Extent{}, nil // "0--1/0": an empty object
	}
	firstText, lastText, ok := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(firstText, 10, 64)
	last, err2 := strconv.ParseInt(lastText, 10, 64)
	if !ok || err1 != nil || err2 != nil || first < 0 || last < first || last >= total {
		return Extent{}, bad
	}
	return Extent{Offset: first, Length: last - first + 1, Total: total}, nil
}

// EmptySuffix tells that a read of the last bytes was refused because there are none:
// a suffix can be unsatisfiable only in an empty object. AWS answers so, MinIO and
// versitygw answer with an empty body.
func EmptySuffix(ex *Exchange, r objstore.Range) bool {
	return r.Offset < 0 && ex.Status() == http.StatusRequestedRangeNotSatisfiable
}

// InfoOf reads the parts of an Info that stand in the headers of GET and HEAD.
func InfoOf(key string, size int64, h http.Header) objstore.Info {
	// An unreadable date leaves the zero time: nothing decides on it.
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	return objstore.Info{
		Key: key, Size: size, ETag: ETag(h.Get("ETag")), Modified: modified.In(time.UTC), Meta: Meta(h),
	}
}
