package s3express

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	maxKey    = 1024
	maxDelete = 1000
)

func (s *Server) put(w http.ResponseWriter, c *call) *refusal {
	if len(c.key) > maxKey {
		return &refusal{400, "KeyTooLongError", "Your key is too long"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, why := s.publish(c, c.key, c.body, metaOf(c.Header))
	if why == nil {
		w.Header().Set("ETag", quoted(o.etag))
	}
	return why
}

// publish puts an object in place if the request's conditions allow it. s.mu is held.
func (s *Server) publish(c *call, key string, body []byte, meta http.Header) (*object, *refusal) {
	old := s.objects[key]
	none, match := c.Header.Get("If-None-Match"), c.Header.Get("If-Match")
	switch {
	case none != "" && none != "*", none != "" && match != "", match == "*":
		return nil, notImplemented("this condition")
	case none == "*" && old != nil:
		return nil, precondition
	case match != "" && old == nil:
		return nil, noSuchKey
	case match != "" && strings.Trim(match, `"`) != old.etag:
		return nil, precondition
	}
	o := &object{body: body, etag: random(16), meta: meta, modified: s.opts.Clock()}
	s.objects[key] = o
	return o, nil
}

func metaOf(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			out[name] = values
		}
	}
	return out
}

func quoted(etag string) string { return `"` + etag + `"` }

func (s *Server) get(w http.ResponseWriter, c *call) *refusal {
	s.mu.Lock()
	o := s.objects[c.key]
	s.mu.Unlock()
	if o == nil {
		return noSuchKey
	}
	if match := c.Header.Get("If-Match"); match != "" && strings.Trim(match, `"`) != o.etag {
		return precondition
	}
	size := int64(len(o.body))
	off, end, ranged, ok := byteRange(c.Header.Get("Range"), size)
	if !ok {
		return &refusal{416, "InvalidRange", "The requested range is not satisfiable"}
	}
	h := w.Header()
	for name, values := range o.meta {
		h[name] = values
	}
	h.Set("ETag", quoted(o.etag))
	h.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(end-off, 10))
	status := http.StatusOK
	if ranged {
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, end-1, size))
	}
	w.WriteHeader(status)
	if c.Method != http.MethodHead {
		_, _ = w.Write(o.body[off:end]) // the client went away: its own loss
	}
	return nil
}

// byteRange reads "bytes=a-b", "bytes=a-" and "bytes=-n" against a size.
func byteRange(header string, size int64) (off, end int64, ranged, ok bool) {
	if header == "" {
		return 0, size, false, true
	}
	span, isBytes := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(span, "-")
	if !isBytes || !dash {
		return 0, size, false, true // not a range that HTTP knows: the whole
	}
	a, err := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	switch {
	case first == "" && err2 == nil: // the last b bytes; none of an empty object
		return max(0, size-b), size, true, b > 0 && size > 0
	case err != nil || a >= size:
		return 0, 0, false, false
	case last == "":
		return a, size, true, true
	case err2 != nil || b < a:
		return 0, 0, false, false
	}
	return a, min(b+1, size), true, true
}

func (s *Server) deleteObject(w http.ResponseWriter, c *call) *refusal {
	s.mu.Lock()
	delete(s.objects, c.key) // and with it every directory that held nothing else
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) deleteObjects(w http.ResponseWriter, c *call) *refusal {
	if !summed(c) {
		return &refusal{400, "InvalidRequest", "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"}
	}
	var asked struct {
		Quiet  bool
		Object []struct{ Key, VersionId string } //nolint:revive // S3's name
	}
	if err := xml.Unmarshal(c.body, &asked); err != nil || len(asked.Object) == 0 || len(asked.Object) > maxDelete {
		return &refusal{400, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema"}
	}
	type entry struct{ Key string }
	doc := struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []entry
	}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range asked.Object {
		if o.VersionId != "" {
			return notImplemented("versions")
		}
	}
	for _, o := range asked.Object {
		delete(s.objects, o.Key)
		if !asked.Quiet {
			doc.Deleted = append(doc.Deleted, entry{o.Key})
		}
	}
	writeXML(w, http.StatusOK, doc)
	return nil
}
