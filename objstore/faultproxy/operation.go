package faultproxy

import (
	"net/http"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// Call is what a request looks like from outside.
type Call struct {
	Op     objstore.Op // "" for requests that no driver makes
	Method string
	Bucket string
	Key    string // as the server stores it, prefix included; "" for requests on the bucket
	Part   string // its number, of an upload's part; "" for all else
}

// callOf reads a path-style request.
func callOf(r *http.Request) Call {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	c := Call{Method: r.Method, Bucket: bucket, Key: key}
	q := r.URL.Query()
	c.Part = q.Get("partNumber")
	switch r.Method {
	case http.MethodGet:
		c.Op = readOp(key, q.Has)
	case http.MethodHead:
		if key != "" {
			c.Op = objstore.OpHead
		}
	case http.MethodPut:
		c.Op = writeOp(key, q.Has, r.Header.Get("X-Amz-Copy-Source") != "")
	case http.MethodPost:
		c.Op = postOp(q.Has)
	case http.MethodDelete:
		switch {
		case q.Has("uploadId"):
			c.Op = objstore.OpAbort
		case key != "":
			c.Op = objstore.OpDelete
		}
	}
	return c
}

func readOp(key string, has func(string) bool) objstore.Op {
	switch {
	case key != "" && !has("uploadId"):
		return objstore.OpGet
	case has("uploads"):
		return objstore.OpListUploads
	case has("list-type"):
		return objstore.OpList
	}
	return ""
}

func writeOp(key string, has func(string) bool, copied bool) objstore.Op {
	switch {
	case key == "":
		return ""
	case has("uploadId") && copied:
		return objstore.OpCopyPart
	case has("uploadId"):
		return objstore.OpUploadPart
	case copied:
		return "" // a copy of a whole object: no driver makes one
	}
	return objstore.OpPut
}

func postOp(has func(string) bool) objstore.Op {
	switch {
	case has("delete"):
		return objstore.OpDelete
	case has("uploads"):
		return objstore.OpCreateUpload
	case has("uploadId"):
		return objstore.OpComplete
	}
	return ""
}
