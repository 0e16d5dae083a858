package segment

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// The closed set of kinds of this package; callers use errors.Is.
var (
	// ErrCorrupt: bytes that were read whole do not say what they must.
	ErrCorrupt = errors.New("corrupt")
	// ErrShortObject: an object shorter than a trailer. Its upload never completed.
	ErrShortObject = errors.New("object shorter than a trailer")
	// ErrTailRead: a read of an object's last bytes gave other bytes than were asked
	// for. It says nothing about the object; the read may be made again.
	ErrTailRead = errors.New("read of an object's tail went wrong")
	// ErrTooLarge: beyond a limit of limits.go; nothing was encoded.
	ErrTooLarge = errors.New("too large")
	// ErrName: a stream, consumer or producer name that is refused.
	ErrName = errors.New("name refused")
	// ErrVersion: a format version that this build does not know.
	ErrVersion = errors.New("unknown format version")
	// ErrUnknownKey: a key of no shape that this build writes. Reported, never touched.
	ErrUnknownKey = errors.New("key of unknown shape")
	// ErrInvalid: a value that the format cannot hold, found before encoding. A
	// mistake of the caller.
	ErrInvalid = errors.New("invalid value")
)

// CorruptionError says which bytes are wrong and why. It matches ErrCorrupt,
// and what Err matches.
type CorruptionError struct {
	File    string // path or key; the caller who knows it fills it in
	Segment ID     // 0 if not known
	UUID    UUID   // zero if not known
	Offset  int64  // in the file, the object or the decoded bytes
	Reason  string
	Err     error // cause, may be nil
}

func (e *CorruptionError) Error() string {
	var b strings.Builder
	b.WriteString("corrupt")
	if e.File != "" {
		fmt.Fprintf(&b, " %s", e.File)
	}
	if e.Segment != 0 {
		fmt.Fprintf(&b, ": segment %d", uint64(e.Segment))
	}
	if e.UUID != uuid.Nil {
		fmt.Fprintf(&b, " (%s)", e.UUID)
	}
	fmt.Fprintf(&b, " at offset %d: %s", e.Offset, e.Reason)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	b.WriteString("; nothing was changed: look at it with `strandline inspect`, then restore these bytes from a good copy")
	return b.String()
}

// Unwrap lets errors.Is find ErrCorrupt and the cause.
func (e *CorruptionError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrCorrupt}
	}
	return []error{ErrCorrupt, e.Err}
}

// InFile fills in the file or key of a *CorruptionError within err that does not
// name one yet, and returns err.
func InFile(err error, file string, id ID) error {
	var c *CorruptionError
	if errors.As(err, &c) {
		if c.File == "" {
			c.File = file
		}
		if c.Segment == 0 {
			c.Segment = id
		}
	}
	return err
}

// NameError is a name that is refused, and why. It matches ErrName.
type NameError struct {
	Name   string
	Reason string
}

func (e *NameError) Error() string {
	name := e.Name
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return fmt.Sprintf("name %q refused: %s; choose another name", name, e.Reason)
}

func (e *NameError) Unwrap() error { return ErrName }

// IsStructural says that the bytes were read in full and are not a valid
// object: short, magic, length, checksum, version or content. It is false for
// every error of reading, which is never a verdict.
func IsStructural(err error) bool {
	var f *InvalidFrameError
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrShortObject) ||
		errors.Is(err, ErrVersion) || errors.As(err, &f)
}

// corrupt makes a *CorruptionError at an offset.
func corrupt(off int64, format string, args ...any) *CorruptionError {
	return &CorruptionError{Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// badVersion is a *CorruptionError that also matches ErrVersion.
func badVersion(off int64, what string, got, want uint64) *CorruptionError {
	e := corrupt(off, "%s version %d, this build reads %d", what, got, want)
	e.Err = ErrVersion
	return e
}

// shifted moves the offset of a *CorruptionError in err from a part to the whole.
func shifted(err error, by int64) error {
	var c *CorruptionError
	if errors.As(err, &c) {
		c.Offset += by
	}
	return err
}
