package s3wire

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// Space is a bucket, or the part of it under a prefix.
type Space struct {
	Bucket string
	prefix string // "" or ending in "/"
}

// NewSpace takes a prefix with or without slashes around it.
func NewSpace(bucket, prefix string) (Space, error) {
	if bucket == "" {
		return Space{}, fmt.Errorf("the store's URL names no bucket")
	}
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return Space{Bucket: bucket}, nil
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		// Such segments are normalised away by some stores: two names, one object.
		if segment == "" || segment == "." || segment == ".." {
			return Space{}, fmt.Errorf("prefix %q: segments must not be empty, %q or %q", prefix, ".", "..")
		}
	}
	return Space{Bucket: bucket, prefix: prefix + "/"}, nil
}

// Full is the bucket's key for a driver's key (or prefix of keys).
func (s Space) Full(key string) string { return s.prefix + key }

// After is Full for the start of a listing, where "" stays "".
func (s Space) After(key string) string {
	if key == "" {
		return ""
	}
	return s.prefix + key
}

// Strip is the driver's key for a bucket's key.
func (s Space) Strip(full string) string { return strings.TrimPrefix(full, s.prefix) }

// Path is "bucket/prefix" for names.
func (s Space) Path() string { return strings.TrimSuffix(s.Bucket+"/"+s.prefix, "/") }

// maxKey is S3's limit for a whole key. versitygw takes longer ones, which no other
// store could hold.
const maxKey = 1024

// Check refuses keys that cannot be right under this prefix.
func (s Space) Check(op objstore.Op, key string) error {
	switch {
	case key == "":
		return Invalid(op, key, fmt.Errorf("the key is empty"))
	case len(s.prefix)+len(key) > maxKey:
		return Invalid(op, key, fmt.Errorf("the key is %d bytes long with its prefix: at most %d", len(s.prefix)+len(key), maxKey))
	}
	return nil
}

// CheckDelete is Check for the keys of a bulk delete, and holds their number.
func (s Space) CheckDelete(keys []string) error {
	if len(keys) > MaxDelete {
		return Invalid(objstore.OpDelete, keys[0], fmt.Errorf("%d keys in one call: at most %d", len(keys), MaxDelete))
	}
	for _, key := range keys {
		if err := s.Check(objstore.OpDelete, key); err != nil {
			return err
		}
	}
	return nil
}

// Invalid is the error for arguments that were refused without asking the store.
func Invalid(op objstore.Op, key string, cause error) error {
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrInvalid, Err: cause}
}

const metaHeader = "X-Amz-Meta-"

// Meta reads the user metadata of an answer, names in lower case: one client library
// lower-cases them and the other makes canonical headers of them.
func Meta(h http.Header) map[string]string {
	var meta map[string]string
	for name, values := range h {
		if rest, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), metaHeader); ok && len(values) > 0 {
			if meta == nil {
				meta = make(map[string]string)
			}
			meta[strings.ToLower(rest)] = values[0]
		}
	}
	return meta
}

// CheckMeta refuses metadata that would not come back as it was: names and values
// are headers, and the libraries treat what is not ASCII differently. Names come back
// in lower case.
func CheckMeta(meta map[string]string) error {
	for name, value := range meta {
		if name == "" || !visible(name) || strings.ContainsAny(name, " :") {
			return fmt.Errorf("metadata name %q: printable ASCII without spaces", name)
		}
		if !visible(value) || value != strings.TrimSpace(value) {
			return fmt.Errorf("metadata %s: its value must be printable ASCII without spaces around it", name)
		}
	}
	return nil
}

func visible(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// ETag strips the quotes.
func ETag(s string) string { return strings.Trim(s, `"`) }
