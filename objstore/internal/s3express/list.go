package s3express

import (
	"encoding/base64"
	"encoding/xml"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxPage = 1000

// badPrefix is the answer that users of directory buckets quote.
var badPrefix = &refusal{400, "InvalidRequest", "This bucket does not support a prefix that does not end in a delimiter. " +
	"Specify a prefix path ending with a delimiter and try again."}

// checkListing holds what both listings have in common.
func checkListing(c *call, refused ...string) *refusal {
	if p := c.arg("prefix"); p != "" && !strings.HasSuffix(p, "/") {
		return badPrefix
	}
	if d := c.arg("delimiter"); d != "" && d != "/" {
		return notImplemented("the delimiter " + d)
	}
	for _, name := range refused {
		if c.has(name) {
			return notImplemented(name)
		}
	}
	return nil
}

func (s *Server) limit(text string) (int, *refusal) {
	if text == "" {
		return s.opts.PageSize, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &refusal{400, "InvalidArgument", "Provided max-keys not an integer or within integer range"}
	}
	return min(n, maxPage, s.opts.PageSize), nil
}

// rank draws an order from the seed which does not depend on what else is in the
// bucket: a listing in pages misses nothing that stands throughout.
func (s *Server) rank(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key)) // never fails, by hash.Hash's contract
	return rand.NewPCG(s.opts.Seed, h.Sum64()).Uint64()
}

func (s *Server) before(a, b string) int {
	switch x, y := s.rank(a), s.rank(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return strings.Compare(a, b)
}

// cut is one page of names: those behind the token's, as many as the page takes. A
// token is a name, obscured; it stands for "e" or "f": what comes next is an empty page
// or a full one.
func (s *Server) cut(names []string, token string, limit int) (page []string, next string, why *refusal) {
	last := "e"
	if token != "" {
		b, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(b) == 0 {
			return nil, "", &refusal{400, "InvalidArgument", "The continuation token provided is incorrect"}
		}
		last = string(b)
	}
	if s.opts.EmptyPages && last[0] == 'e' {
		return nil, encodeToken("f" + last[1:]), nil
	}
	slices.SortFunc(names, s.before)
	names = slices.Compact(names)
	if last = last[1:]; last != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return s.before(n, last) <= 0 })
	}
	if len(names) <= limit {
		return names, "", nil
	}
	if limit == 0 {
		return nil, "", nil
	}
	return names[:limit], encodeToken("e" + names[limit-1]), nil
}

func encodeToken(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

type contents struct {
	Key, LastModified, ETag string
	Size                    int
	StorageClass            string
}

type commonPrefix struct{ Prefix string }

func (s *Server) list(w http.ResponseWriter, c *call) *refusal {
	if why := checkListing(c, "start-after", "marker"); why != nil {
		return why
	}
	limit, why := s.limit(c.arg("max-keys"))
	if why != nil {
		return why
	}
	doc := struct {
		XMLName                                                xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name, Prefix                                           string
		EncodingType, ContinuationToken, NextContinuationToken string `xml:",omitempty"`
		MaxKeys, KeyCount                                      int
		IsTruncated                                            bool
		Contents                                               []contents
		CommonPrefixes                                         []commonPrefix
	}{Name: s.opts.Bucket, Prefix: c.arg("prefix"), MaxKeys: limit, EncodingType: c.arg("encoding-type"), ContinuationToken: c.arg("continuation-token")}
	encode := func(key string) string { return key }
	if doc.EncodingType == "url" {
		encode = url.QueryEscape
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page, next, why := s.cut(s.names(doc.Prefix, c.arg("delimiter")), doc.ContinuationToken, limit)
	if why != nil {
		return why
	}
	for _, name := range page {
		if strings.HasSuffix(name, "/") {
			doc.CommonPrefixes = append(doc.CommonPrefixes, commonPrefix{encode(name)})
			continue
		}
		o := s.objects[name]
		doc.Contents = append(doc.Contents, contents{
			encode(name), o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), quoted(o.etag), len(o.body), "EXPRESS_ONEZONE",
		})
	}
	doc.KeyCount, doc.NextContinuationToken, doc.IsTruncated = len(page), next, next != ""
	writeXML(w, http.StatusOK, doc)
	return nil
}

// names are the entries of a listing: keys, and with a delimiter directories instead of
// what lies in them, those of unfinished uploads too. s.mu is held.
func (s *Server) names(prefix, delimiter string) []string {
	var out []string
	add := func(key string, stands bool) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			return
		}
		if dir, _, deeper := strings.Cut(rest, "/"); deeper && delimiter != "" {
			out = append(out, prefix+dir+"/")
			return
		}
		if stands {
			out = append(out, key)
		}
	}
	for key := range s.objects {
		add(key, true)
	}
	for _, u := range s.uploads {
		add(u.key, false)
	}
	return out
}

func (s *Server) listUploads(w http.ResponseWriter, c *call) *refusal {
	if why := checkListing(c, "upload-id-marker"); why != nil {
		return why
	}
	limit, why := s.limit(c.arg("max-uploads"))
	if why != nil {
		return why
	}
	type entry struct{ Key, UploadId, Initiated string } //nolint:revive // S3's name
	doc := struct {
		XMLName                  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
		Bucket, Prefix           string
		KeyMarker, NextKeyMarker string `xml:",omitempty"`
		MaxUploads               int
		IsTruncated              bool
		Upload                   []entry
	}{Bucket: s.opts.Bucket, Prefix: c.arg("prefix"), KeyMarker: c.arg("key-marker"), MaxUploads: limit}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, u := range s.uploads {
		if strings.HasPrefix(u.key, doc.Prefix) {
			ids = append(ids, id)
		}
	}
	page, next, why := s.cut(ids, doc.KeyMarker, limit)
	if why != nil {
		return why
	}
	for _, id := range page {
		u := s.uploads[id]
		doc.Upload = append(doc.Upload, entry{u.key, id, u.initiated.UTC().Format(time.RFC3339)})
	}
	doc.NextKeyMarker, doc.IsTruncated = next, next != ""
	writeXML(w, http.StatusOK, doc)
	return nil
}
