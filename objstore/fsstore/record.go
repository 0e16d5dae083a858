package fsstore

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/crc32"

	"github.com/strandline/strandline/objstore"
)

// An object's file is
//
//	body       n bytes
//	metadata   m bytes of JSON, or none
//	footer     48 bytes, little-endian:
//	   0  8  magic
//	   8  8  n
//	  16  8  time of the write, nanoseconds since 1970
//	  24 16  ETag
//	  40  4  m
//	  44  4  CRC-32C of the metadata and of the 44 bytes before
//
// The body is not checksummed here: what it holds has its own checksums.
const (
	footerSize  = 48
	footerMagic = "strlobj\x01"

	// maxMeta is above S3's 2 KiB; a larger one is damage or a mistake.
	maxMeta = 64 << 10
)

// record describes one object's file.
type record struct {
	size     int64
	modified time.Time
	etag     [16]byte
	meta     map[string]string
}

func (d *Driver) newRecord(size int64, meta map[string]string) record {
	r := record{size: size, modified: d.clock(), etag: uuid.New()}
	if len(meta) > 0 {
		r.meta = make(map[string]string, len(meta))
		for k, v := range meta {
			r.meta[strings.ToLower(k)] = v
		}
	}
	return r
}

func (r record) info(key string) objstore.Info {
	return objstore.Info{Key: key, Size: r.size, ETag: hex.EncodeToString(r.etag[:]), Modified: r.modified, Meta: maps.Clone(r.meta)}
}

// tail forms what follows the body.
func (r record) tail() ([]byte, error) {
	var b []byte
	if len(r.meta) > 0 {
		var err error
		if b, err = json.Marshal(r.meta); err != nil {
			return nil, err
		}
	}
	m := len(b)
	if m > maxMeta {
		return nil, fmt.Errorf("metadata of %d bytes, the most is %d", m, maxMeta)
	}
	b = append(b, footerMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.modified.UnixNano()))
	b = append(b, r.etag[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(m))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))), nil
}

// errRecord is every way in which a file is not an object of ours.
var errRecord = errors.New("the file's footer does not validate: it is not an object of this bucket, or it is damaged")

// readRecord reads the description at the end of f.
func readRecord(f *os.File) (record, error) {
	st, err := f.Stat()
	if err != nil {
		return record{}, err
	}
	if !st.Mode().IsRegular() || st.Size() < footerSize {
		return record{}, errRecord
	}
	// One read takes footer and metadata of nearly every object.
	b := make([]byte, min(st.Size(), 512))
	if _, err := f.ReadAt(b, st.Size()-int64(len(b))); err != nil {
		return record{}, readError(err)
	}
	foot := b[len(b)-footerSize:]
	m := int64(binary.LittleEndian.Uint32(foot[40:]))
	if string(foot[:8]) != footerMagic || m > maxMeta || st.Size() < m+footerSize {
		return record{}, errRecord
	}
	if m+footerSize > int64(len(b)) {
		b = make([]byte, m+footerSize)
		if _, err := f.ReadAt(b, st.Size()-int64(len(b))); err != nil {
			return record{}, readError(err)
		}
	}
	return parseTail(b[int64(len(b))-footerSize-m:], st.Size())
}

// readError takes a file that shrank under the read as damage: files of the
// bucket are never changed in place.
func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return errRecord
	}
	return err
}

// parseTail decodes metadata and footer of a file of fileSize bytes.
func parseTail(b []byte, fileSize int64) (record, error) {
	m := len(b) - footerSize
	if m < 0 {
		return record{}, errRecord
	}
	foot := b[m:]
	var r record
	r.size = int64(binary.LittleEndian.Uint64(foot[8:]))
	sum := crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli))
	if string(foot[:8]) != footerMagic || binary.LittleEndian.Uint32(foot[44:]) != sum ||
		int64(binary.LittleEndian.Uint32(foot[40:])) != int64(m) || r.size != fileSize-int64(len(b)) {
		return record{}, errRecord
	}
	r.modified = time.Unix(0, int64(binary.LittleEndian.Uint64(foot[16:])))
	copy(r.etag[:], foot[24:40])
	if m > 0 && json.Unmarshal(b[:m], &r.meta) != nil {
		return record{}, errRecord
	}
	return r, nil
}

// openRecord opens a file and reads its description.
func openRecord(path string) (*os.File, record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, record{}, err
	}
	r, err := readRecord(f)
	if err != nil {
		return nil, record{}, errors.Join(err, f.Close())
	}
	return f, r, nil
}

// open opens an object, telling absence from trouble.
func (d *Driver) open(op objstore.Op, key string) (*os.File, record, error) {
	f, r, err := openRecord(d.objectPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.stands(op, key); err != nil {
			return nil, record{}, err
		}
	}
	if err != nil {
		return nil, record{}, fsError(string(op), key, err)
	}
	return f, r, nil
}
