package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/http"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// An Idempotency-Key is an idempotent producer of one append (decision 0010). Its name is
// made of stream and key, so that a key is the stream's; its sequence of the rows, so that
// the shard itself tells a retry from other rows under the key: durably, for a request that comes
// while the first is under way, and on whichever process has the chain by then. No
// state is kept here.
//
// The window: a shard remembers the last append of its segment.MaxProducers most recently
// used producers, keys among them; after as many other keys, and in the next epoch's
// chain, a key is forgotten, and a retry's rows are there twice. What an owner acknowledged
// locally and lost with its disk is lost with its key: there the retry appends, as it should.

const (
	idempotencyHeader = "Idempotency-Key"
	maxKeyBytes       = 200
)

// errKeyReused: the key was used with other rows.
var errKeyReused = errors.New("idempotency key was used with other rows")

// idempotencyKey is the header's; empty: there is none.
func idempotencyKey(h http.Header) (string, error) {
	given := h.Values(idempotencyHeader)
	if len(given) == 0 {
		return "", nil
	}
	key := given[0]
	ok := len(given) == 1 && key != "" && len(key) <= maxKeyBytes
	for i := 0; ok && i < len(key); i++ {
		ok = ' ' <= key[i] && key[i] <= '~'
	}
	if !ok {
		return "", fmt.Errorf("%w: %s: give one of 1 to %d printable ASCII characters", errBadRequest, idempotencyHeader, maxKeyBytes)
	}
	return key, nil
}

// keyPrefix tells the producers that are keys from those that clients name. A client that
// names one so gets what that key would get, and it can only be its own.
const keyPrefix = "~k"

// producerOfKey is the producer that stands for a key. Each segment repeats all of a
// chain's producers, so the name is short: 96 bits of a digest are enough to tell apart
// 10,000 keys, and those who find two alike on purpose have found their own.
func producerOfKey(stream, key string, rows []segment.Row) localtier.Producer {
	d := digest{h: sha256.New()}
	d.text([]byte(stream))
	d.text([]byte(key))
	name := d.h.Sum(nil)
	d.h.Reset()
	for i := range rows {
		d.number(uint64(rows[i].Time)) //nolint:gosec // its bits, noTime included
		d.text(rows[i].Txn)
		d.text(rows[i].Payload)
	}
	// Not the highest number, which no other follows.
	sequence := binary.LittleEndian.Uint64(d.h.Sum(nil)) >> 1
	return localtier.Producer{ID: keyPrefix + base64.RawURLEncoding.EncodeToString(name[:12]), Sequence: sequence}
}

// digest is of numbers and texts, each text with its length, so that no two lists are alike.
type digest struct {
	h   hash.Hash
	buf [8]byte
}

func (d *digest) number(n uint64) {
	binary.LittleEndian.PutUint64(d.buf[:], n)
	_, _ = d.h.Write(d.buf[:]) // a hash takes everything
}

func (d *digest) text(b []byte) {
	d.number(uint64(len(b)))
	_, _ = d.h.Write(b) // a hash takes everything
}

// keyReused says of a key what the shard says of its producer.
func keyReused(err error) error {
	if !errors.Is(err, localtier.ErrSequence) {
		return err
	}
	return fmt.Errorf("%w: nothing was appended: repeat the request with the rows that the key was first sent with, or send these under a key of their own", errKeyReused)
}
