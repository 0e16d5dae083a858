package s3express

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options shape a server.
type Options struct {
	Bucket string // NAME--ZONE--x-s3
	Region string
	// AccessKey and SecretKey are the IAM credentials that the server knows.
	AccessKey, SecretKey string

	Clock       func() time.Time // default time.Now
	SessionLife time.Duration    // default 5 minutes, as AWS
	Seed        uint64           // of the order of listings
	PageSize    int              // most entries in a page; default 1,000
	EmptyPages  bool             // an empty page with a token before each page
}

// Server is a directory bucket. It is safe for concurrent use.
type Server struct {
	opts Options
	host string

	mu       sync.Mutex // everything below
	objects  map[string]*object
	uploads  map[string]*upload // by id
	sessions map[string]session // by token
	made     int                // sessions ever
	lastID   int
	calls    map[string]int // by operation
}

// object is never changed once it is in the map.
type object struct {
	body     []byte
	etag     string
	meta     http.Header
	modified time.Time
}

// New makes an empty bucket.
func New(opts Options) *Server {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.SessionLife == 0 {
		opts.SessionLife = 5 * time.Minute
	}
	if opts.PageSize == 0 {
		opts.PageSize = maxPage
	}
	return &Server{
		opts: opts, host: opts.Bucket + "." + Zonal(opts.Bucket, opts.Region),
		objects: map[string]*object{}, uploads: map[string]*upload{},
		sessions: map[string]session{}, calls: map[string]int{},
	}
}

// Zonal is the endpoint's host name for a bucket: s3express-ZONE.REGION.amazonaws.com.
func Zonal(bucket, region string) string {
	parts := strings.Split(bucket, "--")
	zone := ""
	if len(parts) >= 3 {
		zone = parts[len(parts)-2]
	}
	return "s3express-" + zone + "." + region + ".amazonaws.com"
}

// Host is the one host name that the bucket answers to.
func (s *Server) Host() string { return s.host }

// Sessions is how many sessions were ever made.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// Calls is how often an operation was asked for, refused or not.
func (s *Server) Calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// operation is one row of the routing table.
type operation struct {
	name string
	iam  bool // signed with IAM credentials, not with a session
	do   func(*Server, http.ResponseWriter, *call) *refusal
}

// call is a request whose place and signature were found right.
type call struct {
	*http.Request
	key   string
	query map[string][]string
	body  []byte
}

func (c *call) has(name string) bool { _, ok := c.query[name]; return ok }
func (c *call) arg(name string) string {
	if v := c.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, key: strings.TrimPrefix(r.URL.Path, "/"), query: r.URL.Query()}
	op, why := s.route(c)
	if why == nil {
		s.mu.Lock()
		s.calls[op.name]++
		s.mu.Unlock()
		why = s.authorize(c, op)
	}
	if why == nil {
		why = checkHeaders(c)
	}
	if why == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		why = s.readBody(c)
	}
	if why == nil {
		why = op.do(s, w, c)
	}
	if why != nil {
		why.write(w, r)
	}
}

// route finds the operation. The bucket is the host name's first part.
func (s *Server) route(c *call) (operation, *refusal) {
	host := c.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != s.host {
		if strings.HasPrefix(c.key, s.opts.Bucket) {
			return operation{}, &refusal{400, "InvalidRequest", "Path-style requests are not supported by directory buckets."}
		}
		return operation{}, &refusal{404, "NoSuchBucket", "The specified bucket does not exist"}
	}
	if c.key == "" {
		return routeBucket(c)
	}
	return routeObject(c)
}

func routeBucket(c *call) (operation, *refusal) {
	switch {
	case c.Method == http.MethodGet && c.has("session"):
		return operation{"CreateSession", true, (*Server).createSession}, nil
	case c.Method == http.MethodHead && len(c.query) == 0:
		return operation{"HeadBucket", true, func(*Server, http.ResponseWriter, *call) *refusal { return nil }}, nil
	case c.Method == http.MethodGet && c.arg("list-type") == "2":
		return operation{"ListObjectsV2", false, (*Server).list}, nil
	case c.Method == http.MethodGet && c.has("uploads"):
		return operation{"ListMultipartUploads", false, (*Server).listUploads}, nil
	case c.Method == http.MethodPost && c.has("delete"):
		return operation{"DeleteObjects", false, (*Server).deleteObjects}, nil
	}
	return operation{}, notImplemented(fmt.Sprintf("%s of the bucket with %v", c.Method, c.query))
}

func routeObject(c *call) (operation, *refusal) {
	copies := c.Header.Get("X-Amz-Copy-Source") != ""
	switch {
	case c.Method == http.MethodPut && c.has("partNumber") && copies:
		return operation{"UploadPartCopy", true, (*Server).copyPart}, nil
	case c.Method == http.MethodPut && c.has("partNumber"):
		return operation{"UploadPart", false, (*Server).uploadPart}, nil
	case c.Method == http.MethodPut && !copies && !c.hasOther("x-id"):
		return operation{"PutObject", false, (*Server).put}, nil
	case c.Method == http.MethodGet && !c.hasOther("x-id"):
		return operation{"GetObject", false, (*Server).get}, nil
	case c.Method == http.MethodHead && !c.hasOther("x-id"):
		return operation{"HeadObject", false, (*Server).get}, nil
	case c.Method == http.MethodDelete && c.has("uploadId"):
		return operation{"AbortMultipartUpload", false, (*Server).abort}, nil
	case c.Method == http.MethodDelete && !c.hasOther("x-id"):
		return operation{"DeleteObject", false, (*Server).deleteObject}, nil
	case c.Method == http.MethodPost && c.has("uploads"):
		return operation{"CreateMultipartUpload", false, (*Server).createUpload}, nil
	case c.Method == http.MethodPost && c.has("uploadId"):
		return operation{"CompleteMultipartUpload", false, (*Server).complete}, nil
	}
	return operation{}, notImplemented(fmt.Sprintf("%s of an object with %v", c.Method, c.query))
}

// hasOther tells a query that asks for more than the SDK's own operation name: a
// version, a part, tags, an ACL.
func (c *call) hasOther(allowed string) bool {
	for name := range c.query {
		if name != allowed {
			return true
		}
	}
	return false
}
