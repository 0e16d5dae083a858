package auditbench

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
)

// Sizes are how much is measured.
type Sizes struct {
	Rounds   int   // of each measurement but that of streams, whose counts do not vary
	RawBytes int64 // of the rows of one settle
	Move     int64 // stored bytes of the object that gc halves
	Streams  []int // numbers of streams to settle
	Batches  int   // of each number of streams, whose packs are merged in the end
	Batch    int64 // raw bytes of one of them
	Objects  int   // that are reaped in a round
	Standing int   // objects around a debt; and ten times as many
	Debt     int   // streams to settle, and as many to reap, of one debt
}

// Defaults are Sizes of a run of two to three minutes.
func Defaults() Sizes {
	return Sizes{
		Rounds: 3, RawBytes: 256 << 20, Move: 384 << 20, Streams: []int{10, 1000, 100_000}, Batches: 4, Batch: 64 << 20,
		Objects: 1000, Standing: 500, Debt: 100,
	}
}

// quickDefaults are seconds: every measurement once, too small to say much.
func quickDefaults() Sizes {
	return Sizes{
		Rounds: 1, RawBytes: 4 << 20, Move: 64 << 20, Streams: []int{10, 1000}, Batches: 4, Batch: 1 << 20,
		Objects: 40, Standing: 10, Debt: 5,
	}
}

// fill takes the defaults for what is zero.
func (o *Options) fill() {
	d := Defaults()
	if o.Quick {
		d = quickDefaults()
	}
	o.Rounds = cmp.Or(o.Rounds, d.Rounds)
	o.RawBytes = cmp.Or(o.RawBytes, d.RawBytes)
	o.Move = cmp.Or(o.Move, d.Move)
	o.Batches = cmp.Or(o.Batches, d.Batches)
	o.Batch = cmp.Or(o.Batch, d.Batch)
	o.Objects = cmp.Or(o.Objects, d.Objects)
	o.Standing = cmp.Or(o.Standing, d.Standing)
	o.Debt = cmp.Or(o.Debt, d.Debt)
	if len(o.Streams) == 0 {
		o.Streams = d.Streams
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Validate refuses what cannot be meant, all at once.
func (o *Options) Validate() error {
	var errs []error
	for name, v := range map[string]int64{
		"rounds": int64(o.Rounds), "settle bytes": o.RawBytes, "move bytes": o.Move, "batches": int64(o.Batches),
		"batch bytes": o.Batch, "objects": int64(o.Objects), "standing": int64(o.Standing), "debt": int64(o.Debt),
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s %d: give 1 or more", name, v))
		}
	}
	for i, n := range o.Streams {
		if n < 1 || i > 0 && n <= o.Streams[i-1] {
			errs = append(errs, fmt.Errorf("streams %v: give ascending numbers from 1 on", o.Streams))
			break
		}
	}
	if o.Move > 0 && o.Move < leastMove {
		errs = append(errs, fmt.Errorf("move bytes %d: give %d or more, some chunks that a store can copy", o.Move, int64(leastMove)))
	}
	return errors.Join(errs...)
}

// leastMove of a gc is some chunks of 8 MiB on either side of the cut.
const leastMove = 64 << 20
