package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/segment"
)

// Batch is one append: rows of one stream, all or none.
type Batch struct {
	Stream string
	// Identity is made of the rows' bytes: the same batch again, on whatever process, is to
	// be answered as the first was, and not appended twice. Empty: append it in any case.
	Identity string
	Rows     []segment.Row
}

// parallel is how many appends of one request are under way at once: the log writes what
// is queued together, so more of them cost little.
const parallel = 32

// write appends every group. It waits for all of them, so that one stream's failure leaves
// no other half known; the error is of those that may be tried again.
func (r *Receiver) write(ctx context.Context, groups []*group) (rejected, error) {
	var g errgroup.Group
	g.SetLimit(parallel)
	var mu sync.Mutex
	var refused rejected
	var errs []error
	for _, gr := range groups {
		g.Go(func() error {
			no, err := r.writeGroup(ctx, gr)
			mu.Lock()
			defer mu.Unlock()
			if no.records > 0 {
				refused.add(no.records, "%s", no.why)
			}
			if err != nil && len(errs) < maxErrors {
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = g.Wait() // they return none: each is collected
	return refused, errors.Join(errs...)
}

// maxErrors bounds what one answer is made of.
const maxErrors = 8

// writeGroup appends a stream's parts in their order. A crash between two leaves the first
// ones written; the sender was told nothing, sends all of it again, and the identities of
// those find them.
func (r *Receiver) writeGroup(ctx context.Context, g *group) (no rejected, err error) {
	for i, p := range g.parts {
		b := Batch{Stream: g.stream, Rows: p.rows}
		if !p.timeless && !r.KeepRepeats {
			b.Identity = identity(g.stream, i, p)
		}
		err := r.Append(ctx, b)
		if never(err) {
			no.add(len(p.rows), "%v", err)
			continue
		}
		if err != nil {
			return no, err
		}
	}
	return no, nil
}

// identityBytes of a hash are beyond any accident, and short: a shard's every segment
// begins with thousands of them.
const identityBytes = 18

// identity names a part by its content. The clock's time of a record that has none is not
// in it, for it is in no payload.
func identity(stream string, index int, p *part) string {
	sum := sha256.New()
	var n [8]byte
	number := func(v int) {
		binary.LittleEndian.PutUint64(n[:], uint64(v))
		sum.Write(n[:])
	}
	number(len(stream))
	sum.Write([]byte(stream))
	number(index)
	for i := range p.rows {
		number(len(p.rows[i].Payload))
		sum.Write(p.rows[i].Payload)
	}
	return "otlp:" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:identityBytes])
}
