package s3wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/strandline/strandline/objstore"
)

// OpenBody makes of a successful answer to a read what Driver.Get returns.
func OpenBody(ctx context.Context, ex *Exchange, key string, body io.ReadCloser, r objstore.Range) (io.ReadCloser, objstore.Info, error) {
	h := ex.Header()
	if h.Get("ETag") == "" {
		return nil, objstore.Info{}, errors.Join(Unproven(ex, key, "an ETag"), body.Close())
	}
	extent, err := ReadExtent(h, ex.Status(), r)
	if err != nil {
		err = &objstore.Error{Op: string(ex.Op), Key: key, Kind: objstore.ErrUnavailable, Err: err}
		return nil, objstore.Info{}, errors.Join(err, body.Close())
	}
	return NewBody(ctx, key, body, extent.Length), InfoOf(key, extent.Total, h), nil
}

// EmptyBody is the answer to a read of the last bytes of an empty object, described
// by info.
func EmptyBody(info objstore.Info, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	kind := objstore.ErrUnavailable
	switch {
	case ifMatch != "" && info.ETag != ifMatch:
		kind = objstore.ErrPrecondition
	case info.Size == 0:
		return io.NopCloser(bytes.NewReader(nil)), info, nil
	}
	return nil, objstore.Info{}, &objstore.Error{
		Op: string(objstore.OpGet), Key: info.Key, Kind: kind,
		Err: fmt.Errorf("the object was empty and holds %d bytes now: read it again", info.Size),
	}
}

// HeadInfo reads the answer to a HEAD.
func HeadInfo(ex *Exchange, key string) (objstore.Info, error) {
	h := ex.Header()
	if h.Get("ETag") == "" {
		return objstore.Info{}, Unproven(ex, key, "an ETag")
	}
	size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return objstore.Info{}, Unproven(ex, key, "a length")
	}
	return InfoOf(key, size, h), nil
}

// Unexplained tells a bare 404 or 400 to a HEAD: it has no body to say what is wrong. A
// missing bucket or (on versitygw) an unknown access key look like a missing key, and AWS
// answers 400 to credentials that have expired.
func Unexplained(ex *Exchange) bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return (ex.status == http.StatusNotFound || ex.status == http.StatusBadRequest) && ex.code == ""
}

// Confirm asks by get, whose answer has a code, what an unexplained answer to a HEAD
// meant. get reads at most one byte of the key.
func Confirm(key string, get func(objstore.Range) (io.ReadCloser, objstore.Info, error)) (objstore.Info, error) {
	body, info, err := get(objstore.Range{Offset: 0, Length: 1})
	switch {
	case err == nil:
		// It was created in between. The byte is not wanted, so neither is an error of
		// letting it go.
		_ = body.Close()
		return info, nil
	case errors.Is(err, objstore.ErrRange):
		return objstore.Info{}, &objstore.Error{
			Op: string(objstore.OpHead), Key: key, Kind: objstore.ErrUnavailable,
			Err: errors.New("it was absent and is an empty object now: ask again"),
		}
	default:
		return objstore.Info{}, err
	}
}
