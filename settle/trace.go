package settle

import (
	"context"

	"github.com/strandline/strandline/objstore"
)

// Traced is how a job ended.
type Traced struct {
	Members             int
	Bytes               int64 // of the output, once it is committed
	Through, ServerSide int64 // moved by this attempt
	// Requests of the stores meanwhile; jobs side by side count each other's.
	Requests objstore.Counters
	Err      error
}

// traced is try, between a begin and an end of Deps.Trace.
func (m *mover) traced(ctx context.Context, j *job, revision uint32, o *outcome) error {
	if m.Trace == nil {
		return m.try(ctx, j, revision, o)
	}
	before, through, serverSide := m.requests(), o.through, o.serverSide
	ctx, end := m.Trace(ctx, j.key(revision))
	err := m.try(ctx, j, revision, o)
	end(Traced{
		Members: len(j.members), Bytes: o.size, Through: o.through - through, ServerSide: o.serverSide - serverSide,
		Requests: m.requests().Sub(before), Err: err,
	})
	return err
}
