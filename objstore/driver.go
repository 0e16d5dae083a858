package objstore

import (
	"context"
	"io"
	"time"
)

// Info describes an object as the store reports it.
type Info struct {
	Key  string
	Size int64
	// ETag is opaque, without quotes. Two ETags that differ prove different
	// writes; equal ones prove nothing (MD5 of the content on most stores).
	ETag     string
	Modified time.Time
	// Meta holds lower-case user metadata; only Head and Get fill it.
	Meta map[string]string
}

// PutOptions conditions a write. The zero value is an unconditional overwrite,
// which only Store.PutIfMatch's and doctor's own keys may use.
type PutOptions struct {
	IfNoneMatch bool   // create-once
	IfMatch     string // replace exactly this ETag
	Meta        map[string]string
}

// Range selects bytes. Length < 0: to the end. Offset < 0: the last -Offset
// bytes (all of a shorter object), Length ignored. The zero Range is the whole
// object.
type Range struct {
	Offset int64
	Length int64
}

// Whole is the range of all bytes.
var Whole = Range{Offset: 0, Length: -1}

// Suffix is the range of the last n bytes.
func Suffix(n int64) Range { return Range{Offset: -n, Length: -1} }

// Part is one finished part of an upload.
type Part struct {
	Number int // from 1 to 10,000
	ETag   string
	Size   int64
}

// CopySource names the bytes of a server-side range copy within one store.
type CopySource struct {
	Key    string
	ETag   string // condition on the source; never empty
	Offset int64
	Length int64
}

// Upload is an unfinished multipart upload.
type Upload struct {
	Key       string
	ID        string
	Initiated time.Time
}

// Page is one page of a listing, in the store's order.
type Page struct {
	Objects []Info // Key, Size, ETag, Modified
	// Next continues the listing; empty at the end. Pages may be empty and still
	// have a Next.
	Next string
}

// DeleteResult is the fate of one key of a bulk delete. Err is nil for keys that
// are gone, absent ones included.
type DeleteResult struct {
	Key string
	Err error
}

// Capabilities says what a store can do beyond the required primitives. The driver
// declares what the store's kind is known for; doctor, having tried, narrows it
// (Store.Narrow). Planners obey it.
type Capabilities struct {
	OrderedList         bool  // listings come in bytewise key order
	StartAfter          bool  // List honours startAfter
	DirectoryPrefix     bool  // List and ListUploads take only prefixes that are empty or end in "/" (S3 Express)
	RangeCopy           bool  // CopyPart with a range
	MinCopy             int64 // smallest source that may be range-copied; 0: any
	MinPart             int64 // smallest part but the last (5 MiB on S3)
	EqualParts          bool  // all parts but the last must have one length (R2)
	ConditionalComplete bool  // Complete honours its condition; without it outputs must fit one Put
	ListUploads         bool  // ListUploads sees every unfinished upload, under any prefix
	Append              bool  // declared only, and neither used nor probed: versitygw overwrites the object
	MaxDeleteSet        int   // keys per Delete call
}

// Settings is what the bucket's owner configured, as far as the store tells. A
// field whose question was refused or is unknown to the store is the zero value,
// and its error stands in Unknown under the field's name.
type Settings struct {
	Versioning  string        // "", "Enabled" or "Suspended"
	ObjectLock  bool          // a default retention or the lock itself is on
	Expiry      []Expiration  // lifecycle rules that delete or move objects
	AbortsAfter time.Duration // lifecycle rule for unfinished uploads; 0: none
	Date        time.Time     // the store's clock, from the answer's Date header
	Unknown     map[string]error
}

// Expiration is a lifecycle rule that takes objects away.
type Expiration struct {
	Rule, Prefix string
	Action       string // "expire" or "transition"
}

// Inspector is the optional side of a Driver that doctor asks. It makes no change.
type Inspector interface {
	Settings(ctx context.Context) (Settings, error)
}

// Driver makes one attempt per call: no retries inside, the client's own are off.
// Every error wraps one kind of errors.go. A mutation whose answer was lost is
// ErrAmbiguous, never ErrUnavailable. Drivers are safe for concurrent use.
//
// A nil error from Put, Complete and Delete means durable in the store.
type Driver interface {
	// Put writes an object of exactly size bytes. body can be read again from its
	// start. Conditions of opts fail as ErrExists or ErrPrecondition.
	Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts PutOptions) (Info, error)
	// Get opens a range. Info.Size is the size of the whole object, also for a
	// range. ifMatch may be empty; a mismatch is ErrPrecondition. A body that ends early reads as ErrShort.
	Get(ctx context.Context, key string, r Range, ifMatch string) (io.ReadCloser, Info, error)
	Head(ctx context.Context, key string) (Info, error)
	// List returns keys that begin with prefix and are greater than startAfter (if
	// the capability is there), from token on. max <= 1,000.
	List(ctx context.Context, prefix, startAfter, token string, max int) (Page, error)
	// Delete removes up to Capabilities.MaxDeleteSet keys, unconditionally. The result
	// has one entry for each key asked, in order: a key that the store did not
	// report is ErrAmbiguous. err is for a call that failed as a whole.
	Delete(ctx context.Context, keys []string) ([]DeleteResult, error)

	CreateUpload(ctx context.Context, key string, meta map[string]string) (id string, err error)
	UploadPart(ctx context.Context, key, id string, number int, body io.ReadSeeker, size int64) (Part, error)
	// CopyPart copies a range server-side; the source's ETag is a condition.
	CopyPart(ctx context.Context, key, id string, number int, src CopySource) (Part, error)
	// Complete publishes the upload; opts.Meta is ignored. ErrExists leaves the
	// upload alive: the caller aborts it. ErrNotFound: no such upload.
	Complete(ctx context.Context, key, id string, parts []Part, opts PutOptions) (Info, error)
	// Abort drops an upload with its parts. An absent one is fine.
	Abort(ctx context.Context, key, id string) error
	// ListUploads returns all unfinished uploads whose key begins with prefix, as
	// far as the store shows them.
	ListUploads(ctx context.Context, prefix string) ([]Upload, error)

	Capabilities() Capabilities
	// Name is the driver's URL without credentials, for messages.
	Name() string
	Close() error
}
