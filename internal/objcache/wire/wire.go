package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Paths of an instance.
const (
	PathObjects = "/v1/objects/"
	PathDelete  = "/v1/delete"
	PathEvict   = "/v1/evict"
	PathStatus  = "/v1/status"
)

// Headers besides If-Match.
const (
	HeaderBucket = "Strandline-Bucket"
	HeaderObject = "Strandline-Object"
	FramesType   = "application/vnd.strandline.frames"
)

// MaxKeys of one delete or evict: what stores take in one call.
const MaxKeys = 1000

// Bucket names a bucket to an instance: by the stamp that stands in it and when that was
// put there, since each process may reach it by another URL. A copy of a deployment has the
// stamp, too, but put there later: its deletes must not come to the original's objects.
//
// Buckets of one set share a stamp, and a copied directory keeps its times; there the store's
// name is part of the identity, and has to be the same everywhere.
func Bucket(deployment, class string, stamped time.Time, name string, alone bool) string {
	id := deployment + "/" + class + "/" + strconv.FormatInt(stamped.Unix(), 10) // drivers agree on seconds
	if !alone || strings.HasPrefix(name, "file:") {
		id += "/" + name
	}
	return id
}

// object is objstore.Info as a header.
type object struct {
	Key      string            `json:"key"`
	Size     int64             `json:"size"`
	ETag     string            `json:"etag"`
	Modified int64             `json:"modified,omitempty"` // Unix nanoseconds
	Meta     map[string]string `json:"meta,omitempty"`
}

// EncodeObject writes what a read answers about its object.
func EncodeObject(info objstore.Info) string {
	o := object{Key: info.Key, Size: info.Size, ETag: info.ETag, Meta: info.Meta}
	if !info.Modified.IsZero() {
		o.Modified = info.Modified.UnixNano()
	}
	b, _ := json.Marshal(o) // numbers and strings always encode
	return string(b)
}

// DecodeObject is EncodeObject's inverse; an answer about another key is refused.
func DecodeObject(key, text string) (objstore.Info, error) {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return objstore.Info{}, fmt.Errorf("%s of %s: %w", HeaderObject, key, err)
	}
	if o.Key != key || o.Size < 0 || o.ETag == "" {
		return objstore.Info{}, fmt.Errorf("%s of %s: key %q, size %d, ETag %q", HeaderObject, key, o.Key, o.Size, o.ETag)
	}
	info := objstore.Info{Key: key, Size: o.Size, ETag: o.ETag, Meta: o.Meta}
	if o.Modified != 0 {
		info.Modified = time.Unix(0, o.Modified)
	}
	return info, nil
}

// Faithful says whether an object's description comes out of a header as it went in.
func Faithful(info objstore.Info) bool {
	plain := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	}
	for name, value := range info.Meta {
		if !plain(name) || !plain(value) {
			return false
		}
	}
	return info.Size >= 0 && info.ETag != "" && plain(info.ETag)
}

// Keys is the body of a delete and of an evict.
type Keys struct {
	Keys []string `json:"keys"`
}

// Fates is the answer to a delete.
type Fates struct {
	Fates []Fate `json:"fates"`
}

// Fate is what became of one key: gone if Kind is empty.
type Fate struct {
	Key    string `json:"key"`
	Kind   string `json:"kind,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// kinds gives the store's errors a name on the wire. One that is not among them comes
// out as "outcome unknown".
var kinds = []struct {
	name string
	kind error
}{
	{"ambiguous", objstore.ErrAmbiguous}, // first: an error that is two things is this one
	{"conflict", objstore.ErrConflict},
	{"denied", objstore.ErrDenied},
	{"invalid", objstore.ErrInvalid},
	{"unsupported", objstore.ErrUnsupported},
	{"corrupt", objstore.ErrCorrupt},
	{"no-space", objstore.ErrNoSpace},
	{"unavailable", objstore.ErrUnavailable},
}

// FateOf is a delete's result on the wire.
func FateOf(r objstore.DeleteResult) Fate {
	if r.Err == nil {
		return Fate{Key: r.Key}
	}
	f := Fate{Key: r.Key, Kind: "ambiguous", Detail: r.Err.Error()}
	for _, k := range kinds {
		if errors.Is(r.Err, k.kind) {
			f.Kind = k.name
			break
		}
	}
	return f
}

// Err is FateOf's inverse.
func (f Fate) Err() error {
	if f.Kind == "" {
		return nil
	}
	kind := objstore.ErrAmbiguous
	for _, k := range kinds {
		if f.Kind == k.name {
			kind = k.kind
		}
	}
	return &objstore.Error{Op: "delete", Key: f.Key, Kind: kind, Err: fmt.Errorf("through the object cache: %s", f.Detail)}
}
