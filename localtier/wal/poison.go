package wal

import "fmt"

// failure is what went wrong while a run was made durable.
type failure struct {
	op    string
	path  string
	err   error
	final bool // it cannot be told what the disk has: the log is poisoned
}

func (f *failure) Error() string { return fmt.Sprintf("%s %s: %v", f.op, f.path, classify(f.err)) }

func (f *failure) Unwrap() error { return classify(f.err) }

// rollback takes a failed write off the file again. If that fails too, nobody
// knows what the file holds: final.
//
// A file is whole once it ends where its frames ended: one that was longer, with
// zeros or stale bytes behind them, grows from here on.
func (l *Log) rollback(op string, err error) error {
	f := &failure{op: op, path: segmentPath(l.dir, l.durable.start.ID), err: err}
	if terr := l.file.Truncate(l.durable.end); terr != nil {
		f.final = true
		f.err = fmt.Errorf("%w, and the rollback: %w", classify(err), terr)
	}
	l.filled = 0
	return f
}

// fail refuses the runs and all that is queued behind them: their seqs follow
// rows that are not there. The log is poisoned by a final failure; else it
// stands where the disk stands, and appends wait for Resume.
func (l *Log) fail(runs []*run, err error) {
	f, ok := err.(*failure) //nolint:errorlint // commit returns nothing else
	final := !ok || f.final
	err = l.freed(err)
	l.mu.Lock()
	failed := append(append([]*run(nil), runs...), l.queue...)
	l.queue = nil
	l.queued.Store(0)
	l.siblings.released = 0
	if final {
		err = fmt.Errorf("%w: %w", ErrPoisoned, err)
		l.poison = err
		l.stopAge()
	} else {
		l.takeBack(failed, err)
	}
	l.unflushed = 0
	for _, r := range failed {
		l.recycle(r)
		r.err = err
	}
	l.inflight = nil
	l.mu.Unlock()
	l.metrics.failed(final)
	l.cfg.Logger.Error("log write failed", "err", err, "poisoned", final, "dir", l.dir)
	for _, r := range failed {
		close(r.done)
	}
}

// takeBack puts the head back to where the disk stands. Under mu.
func (l *Log) takeBack(failed []*run, err error) {
	for _, r := range failed {
		if len(r.marks) > 0 {
			l.stall = err
		}
	}
	l.head = l.durable
	l.stopAge()
	if l.head.open && l.head.frames > 1 {
		// A Seal that found the disk full is tried again one age later.
		l.armAge(l.cfg.SegmentAge)
	}
}

// Resume lets appends in again after a write was rolled back. Between the
// failure and Resume the caller takes back what it had built on the seqs of the
// refused appends: State().Next is where they begin again. It is a no-op on a
// log that did not stall, and does not heal a poisoned one.
func (l *Log) Resume() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	l.stall = nil
	return nil
}

// usable says why the log takes nothing any more. Under mu.
func (l *Log) usable() error {
	if l.poison != nil {
		return l.poison
	}
	if l.closing {
		return ErrClosed
	}
	return nil
}
