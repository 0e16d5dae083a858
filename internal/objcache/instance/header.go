package instance

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/crc32"

	"github.com/strandline/strandline/objstore"
)

const (
	magic       = "SLOC"
	version     = 1
	headerFixed = 16
	// maxDescription holds a key of 1 KiB, 2 KiB of metadata and a bucket's name, with
	// what JSON adds to them.
	maxDescription = 32 << 10
)

// castagnoli is a constant table; nothing writes to it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errHeader: not a header that this build writes.
var errHeader = errors.New("no header of a cached block")

// description says what a file holds.
type description struct {
	Bucket   string            `json:"bucket"`
	Key      string            `json:"key"`
	ETag     string            `json:"etag"`
	Size     int64             `json:"size"` // of the object
	Modified int64             `json:"modified"`
	Meta     map[string]string `json:"meta,omitempty"`
	Block    int64             `json:"block"`
	Length   int64             `json:"length"` // of the block
	CRC      uint32            `json:"crc"`
	Filled   int64             `json:"filled"` // Unix nanoseconds, before the GET
}

func describe(bucket string, info *objstore.Info, block int64) description {
	d := description{Bucket: bucket, Key: info.Key, ETag: info.ETag, Size: info.Size, Meta: info.Meta, Block: block}
	if !info.Modified.IsZero() {
		d.Modified = info.Modified.UnixNano()
	}
	return d
}

func (d *description) info() objstore.Info {
	info := objstore.Info{Key: d.Key, ETag: d.ETag, Size: d.Size, Meta: d.Meta}
	if d.Modified != 0 {
		info.Modified = time.Unix(0, d.Modified)
	}
	return info
}

// sound says whether a block can be what the description says.
func (d *description) sound() bool {
	from := d.Block * BlockBytes
	return d.Block >= 0 && d.Block < 1<<31 && from < d.Size && d.Length == min(BlockBytes, d.Size-from) &&
		d.Bucket != "" && d.Key != "" && d.ETag != ""
}

func encodeHeader(d *description) []byte {
	text, _ := json.Marshal(d) // numbers and strings always encode
	b := make([]byte, headerFixed, headerFixed+len(text))
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[4:], version)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(text))) //nolint:gosec // a few KiB
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(text, castagnoli))
	return append(b, text...)
}

// decodeHeader reads a header off the front of b. There is one form only: what does
// not encode to the same bytes again is refused.
func decodeHeader(b []byte) (description, int, error) {
	var d description
	if len(b) < headerFixed || string(b[:4]) != magic || binary.LittleEndian.Uint32(b[4:]) != version {
		return d, 0, errHeader
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > maxDescription || int(n) > len(b)-headerFixed {
		return d, 0, errHeader
	}
	end := headerFixed + int(n)
	if err := json.Unmarshal(b[headerFixed:end], &d); err != nil {
		return d, 0, fmt.Errorf("%w: %w", errHeader, err)
	}
	if !d.sound() || !bytes.Equal(encodeHeader(&d), b[:end]) {
		return d, 0, errHeader
	}
	return d, end, nil
}
