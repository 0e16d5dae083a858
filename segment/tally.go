package segment

import "github.com/cespare/xxhash/v2"

// Tally sums up rows of one stream: what a chunk's entry says of them.
type Tally struct {
	First, Last      Seq
	Rows             uint64
	MinTime, MaxTime int64
	RowSum           uint64 // sum modulo 2^64 of RowSum over the rows
	Raw              int64  // bytes of the frames, counted by who knows frames
}

// AddRow counts one row, which stands after those counted before.
func (t *Tally) AddRow(r Row) { t.addRow(&r) }

func (t *Tally) addRow(r *Row) {
	if t.Rows == 0 {
		t.First, t.MinTime, t.MaxTime = r.Seq, r.Time, r.Time
	}
	t.Last = r.Seq
	t.Rows++
	t.MinTime, t.MaxTime = min(t.MinTime, r.Time), max(t.MaxTime, r.Time)
	t.RowSum += rowSum(r)
}

// Add counts the rows of u, which stand after those of t.
func (t *Tally) Add(u Tally) {
	if u.Rows == 0 {
		t.Raw += u.Raw
		return
	}
	if t.Rows == 0 {
		u.Raw += t.Raw
		*t = u
		return
	}
	t.Last = u.Last
	t.Rows += u.Rows
	t.MinTime, t.MaxTime = min(t.MinTime, u.MinTime), max(t.MaxTime, u.MaxTime)
	t.RowSum += u.RowSum
	t.Raw += u.Raw
}

// Matches says whether a chunk's entry says the same of its rows.
func (t *Tally) Matches(c *Chunk) bool { return *t == c.Tally() }

// RowSum is the XxHash64 over a row's seq, time, transaction id and payload, as
// u64 seq, i64 time, u64 length of the transaction id, and the bytes of both:
// no two rows have the same encoding. Summed modulo 2^64 it is the same for any
// way of chunking or compressing, and adds up over chunks.
func RowSum(r Row) uint64 { return rowSum(&r) }

func rowSum(r *Row) uint64 {
	var fixed [24]byte
	le.PutUint64(fixed[:], uint64(r.Seq))
	le.PutUint64(fixed[8:], uint64(r.Time))
	le.PutUint64(fixed[16:], uint64(len(r.Txn)))
	var d xxhash.Digest
	d.Reset()
	mustWrite(&d, fixed[:])
	mustWrite(&d, r.Txn)
	mustWrite(&d, r.Payload)
	return d.Sum64()
}
