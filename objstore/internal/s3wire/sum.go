package s3wire

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	kcrc "github.com/klauspost/crc32"
)

var castagnoli = kcrc.MakeTable(crc32.Castagnoli)

// ChecksumHeader carries the value that the store checks the body against.
const ChecksumHeader = "X-Amz-Checksum-Crc32c"

// Checksum is the CRC-32C of a body as the header wants it, and leaves the body at
// its start. It costs some 0.1 s of CPU a GiB, against 1.2 s for the SHA-256 that
// the libraries would put into the signature.
func Checksum(body io.ReadSeeker, size int64) (string, error) {
	sum := kcrc.New(castagnoli)
	if err := digest(sum, body, size); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32())), nil
}

// digest sums a body up from its start and goes back there.
func digest(sum io.Writer, body io.ReadSeeker, size int64) error {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("going to the body's start: %w", err)
	}
	n, err := io.Copy(sum, body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if n != size {
		return fmt.Errorf("the body holds %d bytes, not %d", n, size)
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("going back to the body's start: %w", err)
	}
	return nil
}
