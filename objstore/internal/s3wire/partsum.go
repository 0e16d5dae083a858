package s3wire

import (
	"crypto/md5" //nolint:gosec // an integrity value that S3 names, not a secret's guard
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/strandline/strandline/objstore"
)

// PartSums chooses the value that a store checks a part against: CRC-32C, unless the
// store refuses it. AWS is reported to refuse a checksum on the part of an upload that
// declared no algorithm ("Checksum Type mismatch"); ours declare none, because they hold
// copied parts. Every store takes Content-MD5, at about six times the CPU.
//
// Safe for concurrent use; the zero value begins with CRC-32C.
type PartSums struct{ md5 atomic.Bool }

// PartSum is one of the two; the other is empty.
type PartSum struct{ CRC32C, MD5 string }

// Of reads the body and leaves it at its start.
func (p *PartSums) Of(body io.ReadSeeker, size int64) (PartSum, error) {
	if !p.md5.Load() {
		sum, err := Checksum(body, size)
		return PartSum{CRC32C: sum}, err
	}
	h := md5.New() //nolint:gosec // as above
	if err := digest(h, body, size); err != nil {
		return PartSum{}, err
	}
	return PartSum{MD5: base64.StdEncoding.EncodeToString(h.Sum(nil))}, nil
}

// Judge looks at the verdict on a part. If the store refused the kind of checksum, later
// parts carry the other one, and this one is ErrUnavailable: sent again, it may pass.
func (p *PartSums) Judge(sum PartSum, key string, err error) error {
	var a *Answer
	if err == nil || sum.CRC32C == "" || !errors.As(err, &a) || a.Code != "InvalidRequest" || !strings.Contains(strings.ToLower(a.Message), "checksum") {
		return err
	}
	p.md5.Store(true)
	return &objstore.Error{Op: string(objstore.OpUploadPart), Key: key, Kind: objstore.ErrUnavailable, Err: hinted(a, "parts carry an MD5 from now on")}
}
