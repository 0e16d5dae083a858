package powercut

import "errors"

// Kind is what an operation does.
type Kind string

// The operations. Open and Read change nothing: they can be made to fail, and
// are neither counted nor logged.
const (
	KindOpen     Kind = "open"
	KindRead     Kind = "read"
	KindCreate   Kind = "create"
	KindWrite    Kind = "write"
	KindTruncate Kind = "truncate"
	KindSync     Kind = "sync"
	KindRename   Kind = "rename"
	KindRemove   Kind = "remove"
	KindSyncDir  Kind = "syncdir"
)

// Op is one operation.
type Op struct {
	Kind Kind
	Path string
	To   string // rename
	Off  int64  // of a write or read; the length of a truncate or sync
	Len  int64
	Err  error // why it was refused; nil if it was done
}

func (o Op) changes() bool { return o.Kind != KindOpen && o.Kind != KindRead }

// PartError is an injected fault that lets the first N bytes of a write through.
type PartError struct {
	N   int
	Err error
}

func (e *PartError) Error() string { return e.Err.Error() }
func (e *PartError) Unwrap() error { return e.Err }

func partOf(err error, n int) int {
	var part *PartError
	if errors.As(err, &part) {
		return min(part.N, n)
	}
	return 0
}

// begin says whether an operation may go ahead, and logs it.
func (f *FS) begin(op Op) error {
	if f.off {
		return ErrPowerOff
	}
	if op.changes() && f.budget == 0 {
		f.off = true
		return ErrPowerOff
	}
	if f.inject != nil {
		op.Err = f.inject(op)
	}
	if op.changes() {
		if f.budget > 0 {
			f.budget--
		}
		if !f.quiet {
			f.ops = append(f.ops, op)
		}
	}
	return op.Err
}

// Inject has fn asked before every operation; an error that it returns is the
// operation's, which is not done. nil ends that. fn must not use the FS.
func (f *FS) Inject(fn func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject = fn
}

// FailNth makes the nth operation of a kind from now on (1 is the next) fail
// with err, once. hit says whether it came to that.
func (f *FS) FailNth(kind Kind, n int, err error) (hit func() bool) {
	seen := 0
	f.Inject(func(op Op) error {
		if op.Kind != kind {
			return nil
		}
		if seen++; seen == n {
			return err
		}
		return nil
	})
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return seen >= n
	}
}

// PowerOffAfter lets n more changes happen; then the power goes.
func (f *FS) PowerOffAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget = n
}

// SetFree leaves n bytes of space; a negative n is no limit.
func (f *FS) SetFree(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = n
}

// Quiet keeps no log of operations, for runs that make very many.
func (f *FS) Quiet() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quiet = true
}

// Off says that the power is gone.
func (f *FS) Off() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.off
}

// PowerOff takes the power away now.
func (f *FS) PowerOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
}

// Ops is the log of changes so far, refused ones with their error.
func (f *FS) Ops() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.ops...)
}

// room is how many of n bytes at off fit, and takes their space.
func (f *FS) room(i *inode, off int64, n int) int {
	growth := off + int64(n) - i.seen.size
	if f.free < 0 || growth <= 0 {
		return n
	}
	if growth > f.free {
		n -= int(min(growth-f.free, int64(n)))
		growth = f.free
	}
	f.free -= growth
	return n
}

func (f *FS) credit(n int64) {
	if f.free >= 0 {
		f.free += n
	}
}

// give returns an unlinked file's space.
func (f *FS) give(i *inode) {
	if i != nil {
		f.credit(i.seen.size)
	}
}
