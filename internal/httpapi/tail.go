package httpapi

import (
	"sync/atomic"

	"github.com/strandline/strandline/segment"
)

// Tail is where followers find the writer that a process has at present. A process makes
// one and gives it to every Handler: when an epoch ends, the followers that the old
// Handler serves go on with the writer of the new one. Its zero value has none.
type Tail struct{ now atomic.Pointer[tail] }

// tail is the writer of one epoch.
type tail struct {
	writer Writer
	epoch  segment.Epoch
	shards uint32                         // of the epoch
	terms  map[segment.Shard]segment.Term // of the shards that are served here
}

func (t *Tail) set(w Writer, epoch segment.Epoch, shards uint32) {
	now := &tail{writer: w, epoch: epoch, shards: max(shards, 1), terms: map[segment.Shard]segment.Term{}}
	for _, st := range w.Status() {
		now.terms[st.Chain.Shard] = st.Term
	}
	t.now.Store(now)
}

// owner is the tail if it serves the chain, or nil.
func (t *Tail) owner(c segment.Chain) *tail {
	now := t.now.Load()
	if now == nil || now.epoch != c.Epoch {
		return nil
	}
	if _, mine := now.terms[c.Shard]; !mine {
		return nil
	}
	return now
}
