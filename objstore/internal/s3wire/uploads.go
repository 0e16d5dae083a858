package s3wire

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	maxPartNumber = 10_000
	// MinPart is S3's smallest part but the last; a smaller one is refused only when
	// the upload completes.
	MinPart = 5 << 20
	// MinCopy is the smallest source of a ranged copy: AWS wants more than 5 MiB.
	// MinIO and versitygw take any, but one plan for all stores is the one that the
	// tests prove.
	MinCopy = MinPart + 1
	// MaxDelete is S3's limit of keys in a bulk delete.
	MaxDelete = 1000
	// MaxList is S3's limit of keys in a page.
	MaxList = 1000
)

// CheckPart refuses part numbers and sizes that no store takes.
func CheckPart(op objstore.Op, key, id string, number int, size int64) error {
	switch {
	case id == "":
		return Invalid(op, key, errors.New("the upload's id is empty"))
	case number < 1 || number > maxPartNumber:
		return Invalid(op, key, fmt.Errorf("part number %d: from 1 to %d", number, maxPartNumber))
	case size < 0:
		return Invalid(op, key, fmt.Errorf("part of %d bytes", size))
	}
	return nil
}

// CheckCopy refuses copies that would not be safe or not be what they say.
func CheckCopy(key, id string, number int, src objstore.CopySource) error {
	if src.ETag == "" {
		return Invalid(objstore.OpCopyPart, key, errors.New("the copy has no condition on its source: name its ETag"))
	}
	if src.Offset < 0 || src.Length <= 0 {
		return Invalid(objstore.OpCopyPart, key, fmt.Errorf("copy of %d bytes at %d", src.Length, src.Offset))
	}
	return CheckPart(objstore.OpCopyPart, key, id, number, src.Length)
}

// CheckComplete refuses a completion without parts, or with parts out of order.
func CheckComplete(key, id string, parts []objstore.Part) error {
	if len(parts) == 0 {
		return Invalid(objstore.OpComplete, key, errors.New("an upload needs at least one part"))
	}
	last := 0
	for _, p := range parts {
		if err := CheckPart(objstore.OpComplete, key, id, p.Number, p.Size); err != nil {
			return err
		}
		if p.Number <= last || p.ETag == "" {
			return Invalid(objstore.OpComplete, key, fmt.Errorf("part %d: parts need rising numbers and an ETag each", p.Number))
		}
		last = p.Number
	}
	return nil
}

// SizeOf is the size of an object made of these parts.
func SizeOf(parts []objstore.Part) int64 {
	var n int64
	for _, p := range parts {
		n += p.Size
	}
	return n
}

// CheckConditions refuses a write with both conditions at once: no store defines it.
func CheckConditions(op objstore.Op, key string, opts objstore.PutOptions) error {
	if opts.IfNoneMatch && opts.IfMatch != "" {
		return Invalid(op, key, errors.New("create-once and replace exclude each other"))
	}
	if opts.IfMatch == "*" {
		return Invalid(op, key, errors.New(`If-Match "*" means different things to different stores: name an ETag`))
	}
	return nil
}

// IsMinIO tells a MinIO server by its Server header. It lists unfinished uploads only
// for the prefix "" (those begun since its start) and for an exact key.
func IsMinIO(server string) bool { return strings.HasPrefix(server, "MinIO") }

// Capabilities of a general-purpose S3 store.
func Capabilities(server string) objstore.Capabilities {
	return objstore.Capabilities{
		OrderedList:         true,
		StartAfter:          true,
		RangeCopy:           true,
		MinCopy:             MinCopy,
		MinPart:             MinPart,
		ConditionalComplete: true,
		ListUploads:         !IsMinIO(server),
		MaxDeleteSet:        MaxDelete,
	}
}

// UploadMark is a place in the listing of unfinished uploads.
type UploadMark struct{ Key, ID string }

// UploadPage is one page of it, with full keys.
type UploadPage struct {
	Uploads []objstore.Upload
	Next    UploadMark
	More    bool
}

// CollectUploads reads all pages for a prefix. On MinIO it asks for the exact key,
// which its disk answers, and for everything, which its memory answers, and joins
// the two.
func CollectUploads(space Space, prefix, server string, page func(full string, at UploadMark) (UploadPage, error)) ([]objstore.Upload, error) {
	full := space.Full(prefix)
	asked := []string{full}
	if IsMinIO(server) && full != "" {
		asked = append(asked, "")
	}
	var out []objstore.Upload
	seen := make(map[UploadMark]bool)
	for _, p := range asked {
		var at UploadMark
		for {
			got, err := page(p, at)
			if err != nil {
				return nil, err
			}
			for _, u := range got.Uploads {
				mark := UploadMark{u.Key, u.ID}
				if !strings.HasPrefix(u.Key, full) || seen[mark] {
					continue
				}
				seen[mark] = true
				out = append(out, objstore.Upload{Key: space.Strip(u.Key), ID: u.ID, Initiated: u.Initiated.In(time.UTC)})
			}
			if !got.More {
				break
			}
			if got.Next == at || got.Next == (UploadMark{}) {
				return nil, &objstore.Error{
					Op: string(objstore.OpListUploads), Key: prefix, Kind: objstore.ErrUnavailable,
					Err: fmt.Errorf("the store's listing does not move on from %q", at.Key),
				}
			}
			at = got.Next
		}
	}
	return out, nil
}
