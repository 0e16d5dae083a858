package storebench

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/objstore"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of a body as the store's header wants it.
func checksum(body []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli)))
}

// sendParts is how a bare client uploads a stream of bytes: parts of the Store's size, as
// many in flight, buffers used again. It returns how many parts there were.
func sendParts(ctx context.Context, chunk []byte, chunks int, send func(ctx context.Context, n int, part []byte) error) (int, error) {
	free := make(chan []byte, objstore.DefaultConcurrency+1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(objstore.DefaultConcurrency)
	var part []byte
	n := 0
	flush := func() {
		n++
		number, body := n, part
		part = nil
		group.Go(func() error {
			err := send(ctx, number, body)
			free <- body[:0]
			return err
		})
	}
	for range chunks {
		for rest := chunk; len(rest) > 0; {
			if part == nil {
				select {
				case part = <-free:
				default:
					part = make([]byte, 0, objstore.DefaultPartSize)
				}
			}
			k := min(len(rest), objstore.DefaultPartSize-len(part))
			part, rest = append(part, rest[:k]...), rest[k:]
			if len(part) == objstore.DefaultPartSize {
				flush()
			}
		}
	}
	if len(part) > 0 {
		flush()
	}
	return n, group.Wait()
}
