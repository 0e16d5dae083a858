package sim

import (
	"context"
	"errors"
	"syscall"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// kindOf names an error by its kind.
func kindOf(err error) string {
	if err == nil {
		return "fine"
	}
	for _, k := range []struct {
		is   error
		name string
	}{
		{localtier.ErrHeld, "held"},
		{localtier.ErrChainClosed, "chain closed"},
		{localtier.ErrRolledBack, "rolled back"},
		{localtier.ErrLeftover, "leftover"},
		{localtier.ErrFenced, "fenced"},
		{catalog.ErrFenced, "fenced"},
		{localtier.ErrLeaseLost, "lease lost"},
		{localtier.ErrHalted, "halted"},
		{localtier.ErrClosed, "closed"},
		{localtier.ErrBackpressure, "backpressure"},
		{localtier.ErrUnpublished, "unpublished"},
		{localtier.ErrNotOwner, "not owner"},
		{wal.ErrLocked, "locked"},
		{segment.ErrCorrupt, "corrupt"},
		{errDead, "dead"},
		{powercut.ErrPowerOff, "power off"},
		{syscall.EIO, "disk fault"},
		{syscall.ENOSPC, "disk full"},
		{wal.ErrFull, "disk full"},
		{wal.ErrPoisoned, "poisoned"},
		{catalog.ErrAmbiguous, "catalog ambiguous"},
		{catalog.ErrUnavailable, "catalog away"},
		{catalog.ErrConflict, "catalog conflict"},
		{objstore.ErrAmbiguous, "store ambiguous"},
		{objstore.ErrUnavailable, "store away"},
		{objstore.ErrShort, "store short"},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "deadline"},
	} {
		if errors.Is(err, k.is) {
			return k.name
		}
	}
	return "other"
}
