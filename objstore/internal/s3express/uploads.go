package s3express

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	minPart  = 5 << 20
	maxParts = 10_000
)

// upload is an unfinished multipart upload.
type upload struct {
	key       string
	meta      http.Header
	initiated time.Time
	parts     map[int]part
}

type part struct {
	body []byte
	etag string
}

func (s *Server) createUpload(w http.ResponseWriter, c *call) *refusal {
	if c.Header.Get("If-None-Match") != "" || c.Header.Get("If-Match") != "" {
		return notImplemented("a condition where an upload begins")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	id := fmt.Sprintf("%s.%d", random(12), s.lastID)
	s.uploads[id] = &upload{key: c.key, meta: metaOf(c.Header), initiated: s.opts.Clock(), parts: map[int]part{}}
	writeXML(w, http.StatusOK, struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string   //nolint:revive // S3's name
	}{Bucket: s.opts.Bucket, Key: c.key, UploadId: id})
	return nil
}

// upload finds the one that a request names. s.mu is held.
func (s *Server) upload(c *call) (*upload, *refusal) {
	u := s.uploads[c.arg("uploadId")]
	if u == nil || u.key != c.key {
		return nil, noSuchUpload
	}
	return u, nil
}

// addPart keeps a part under the number that the request names. s.mu is held.
func (s *Server) addPart(c *call, body []byte) (string, *refusal) {
	u, why := s.upload(c)
	if why != nil {
		return "", why
	}
	n, err := strconv.Atoi(c.arg("partNumber"))
	if err != nil || n < 1 || n > maxParts {
		return "", &refusal{400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"}
	}
	etag := random(16)
	u.parts[n] = part{body, etag}
	return etag, nil
}

func (s *Server) uploadPart(w http.ResponseWriter, c *call) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	etag, why := s.addPart(c, c.body)
	if why == nil {
		w.Header().Set("ETag", quoted(etag))
	}
	return why
}

func (s *Server) copyPart(w http.ResponseWriter, c *call) *refusal {
	source, err := url.PathUnescape(strings.TrimPrefix(c.Header.Get("X-Amz-Copy-Source"), "/"))
	bucket, key, ok := strings.Cut(source, "/")
	if err != nil || !ok {
		return &refusal{400, "InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"}
	}
	if bucket != s.opts.Bucket {
		return notImplemented("a copy from another bucket, by this server")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	if o == nil {
		return noSuchKey
	}
	if match := c.Header.Get("X-Amz-Copy-Source-If-Match"); match != "" && strings.Trim(match, `"`) != o.etag {
		return precondition
	}
	body, why := copied(c.Header.Get("X-Amz-Copy-Source-Range"), o.body)
	if why != nil {
		return why
	}
	etag, why := s.addPart(c, body)
	if why != nil {
		return why
	}
	writeXML(w, http.StatusOK, struct {
		XMLName            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CopyPartResult"`
		ETag, LastModified string
	}{ETag: quoted(etag), LastModified: s.opts.Clock().UTC().Format(time.RFC3339)})
	return nil
}

// copied is the range of a source that a copy asks for: "bytes=a-b" within it, and of a
// source of more than 5 MiB.
func copied(span string, body []byte) ([]byte, *refusal) {
	if span == "" {
		return body, nil
	}
	if len(body) <= minPart {
		return nil, &refusal{400, "InvalidRequest", "The specified copy source is not supported as a byte-range copy source"}
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(span, "bytes="), "-")
	a, err := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	if err != nil || err2 != nil || a < 0 || b < a {
		return nil, &refusal{400, "InvalidArgument", "The x-amz-copy-source-range value must be of the form bytes=first-last"}
	}
	if b >= int64(len(body)) {
		return nil, &refusal{400, "InvalidArgument", "Range specified is not valid for source object"}
	}
	return body[a : b+1], nil
}

type completePart struct {
	PartNumber int
	ETag       string
}

func (s *Server) complete(w http.ResponseWriter, c *call) *refusal {
	var asked struct{ Part []completePart }
	if err := xml.Unmarshal(c.body, &asked); err != nil || len(asked.Part) == 0 {
		return &refusal{400, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, why := s.upload(c)
	if why != nil {
		return why
	}
	body, why := joined(u, asked.Part)
	if why != nil {
		return why
	}
	o, why := s.publish(c, u.key, body, u.meta)
	if why != nil {
		return why // the upload stays alive
	}
	delete(s.uploads, c.arg("uploadId"))
	writeXML(w, http.StatusOK, struct {
		XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: s.opts.Bucket, Key: u.key, ETag: quoted(o.etag)})
	return nil
}

// joined puts the parts together: 1, 2, 3 without a gap, each as it was sent, all but
// the last of the least size.
func joined(u *upload, parts []completePart) ([]byte, *refusal) {
	var body []byte
	for i, p := range parts {
		if p.PartNumber != i+1 {
			return nil, &refusal{400, "InvalidPartOrder", "Part numbers of a directory bucket start at 1 and are consecutive."}
		}
		have, ok := u.parts[p.PartNumber]
		if !ok || have.etag != strings.Trim(p.ETag, `"`) {
			return nil, &refusal{400, "InvalidPart", "One or more of the specified parts could not be found."}
		}
		if i+1 < len(parts) && len(have.body) < minPart {
			return nil, &refusal{400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"}
		}
		body = append(body, have.body...)
	}
	return body, nil
}

func (s *Server) abort(w http.ResponseWriter, c *call) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, why := s.upload(c); why != nil {
		return why
	}
	delete(s.uploads, c.arg("uploadId"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}
