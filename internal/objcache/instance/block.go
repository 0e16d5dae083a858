package instance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/klauspost/crc32"

	"github.com/strandline/strandline/objstore"
)

// block is a block in a file. All but dead never changes.
type block struct {
	obj    *object
	desc   description
	info   *objstore.Info // the object's, as of the GET
	weight int64          // of its file
	seq    uint64         // names the file, and the block to the eviction policy; never used twice
	dead   bool           // Cache.mu: it is being unlinked, or was
}

// name is the file's, below the directory of blocks. The hash spreads files and keeps
// keys out of file names; the header says whose they are.
func (b *block) name() string {
	return filepath.Join(b.obj.hash[:2], fmt.Sprintf("%s.%08x.%016x", b.obj.hash, b.desc.Block, b.seq))
}

const temporary = ".tmp"

// ours is what files of this package are called: nothing else is ever touched.
var ours = regexp.MustCompile(`^([0-9a-f]{32})\.([0-9a-f]{8})\.([0-9a-f]{16})(\.tmp)?$`)

func hashOf(i id) string {
	sum := sha256.Sum256([]byte(i.bucket + "\x00" + i.key))
	return hex.EncodeToString(sum[:16])
}

func seqOf(hex string) uint64 {
	n, _ := strconv.ParseUint(hex, 16, 64) // ours matched it
	return n
}

// weightOf is what a file of so many bytes counts.
func weightOf(bytes int64) int64 {
	return max(leastWeight, (bytes+diskUnit-1)/diskUnit*diskUnit)
}

// writeFile puts a file in place. No fsync: what a crash leaves is verified before it is used.
func writeFile(path string, header, content []byte) error {
	f, err := os.OpenFile(path+temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		f, err = os.OpenFile(path+temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(header)
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+temporary))
	}
	return nil
}

// buffers hold a file each.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, BlockBytes+headerFixed+maxDescription+1)
	return &b
}}

// errPoisoned: a file that does not hold what the index says.
var errPoisoned = errors.New("a cached block is not what it was")

// readFile reads a block's file into buf and holds every byte of it against the index.
func (b *block) readFile(root string, buf []byte) ([]byte, error) {
	f, err := os.Open(filepath.Join(root, b.name()))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	header := encodeHeader(&b.desc)
	want := len(header) + int(b.desc.Length)
	n, err := io.ReadFull(f, buf[:want+1]) // one more, to see its end
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	content := buf[len(header):max(n, len(header))]
	if n != want || !bytes.Equal(buf[:len(header)], header) || crc32.Checksum(content, castagnoli) != b.desc.CRC {
		return nil, errPoisoned
	}
	return content, nil
}
