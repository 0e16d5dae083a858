package coldload

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/segment"
)

// The kinds of what a read can end in, besides the kinds of objstore and catalog
// for faults that may pass.
var (
	// ErrTrimmed: the rows asked for were given up by a trim or by retention.
	ErrTrimmed = errors.New("trimmed")
	// ErrDeleted: the stream was deleted, and nothing was appended to it again.
	ErrDeleted = errors.New("stream deleted")
	// ErrLost: rows that must be there are not. Loud: run fsck.
	ErrLost = errors.New("rows are lost")
	// ErrCorrupt: an object holds something else than its ref says.
	ErrCorrupt = errors.New("object is corrupt")
	// ErrConfig: a Config that cannot work.
	ErrConfig = errors.New("invalid configuration")
)

// ReadError is the one context of this layer.
type ReadError struct {
	Stream string
	At     segment.Pos // the position that could not be delivered; zero: the first one that there is
	Key    string      // the object concerned, if any
	First  segment.Pos // ErrTrimmed, ErrDeleted, and ErrLost that was accepted: the first position to read on from
	Kind   error
	Detail string
	Err    error
}

func (e *ReadError) Error() string {
	s := fmt.Sprintf("stream %q", e.Stream)
	if e.At != (segment.Pos{}) {
		s += " at " + e.At.String()
	}
	s += ": " + e.Kind.Error()
	if e.Key != "" {
		s += ": object " + e.Key
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	switch {
	case errors.Is(e.Kind, ErrTrimmed), e.Accepted():
		s += fmt.Sprintf("; read from %s on", e.First)
	case errors.Is(e.Kind, ErrDeleted):
		s += fmt.Sprintf("; rows that are appended again stand from %s on", e.First)
	case errors.Is(e.Kind, ErrLost), errors.Is(e.Kind, ErrCorrupt):
		s += "; run strandline fsck to see what else is affected"
	}
	return s
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *ReadError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Accepted says whether an operator gave the rows up as lost: First is behind them.
func (e *ReadError) Accepted() bool { return errors.Is(e.Kind, ErrLost) && e.First != (segment.Pos{}) }

// ScanError is the context of a shard scan.
type ScanError struct {
	Chain  segment.Chain
	At     segment.Seq // the first seq that could not be delivered
	Stream string      // if it is one stream's fault
	Key    string      // the object concerned, if any
	First  segment.Seq // ErrTrimmed, and ErrLost that was accepted: the first seq to scan on from
	Kind   error
	Detail string
	Err    error
}

func (e *ScanError) Error() string {
	s := fmt.Sprintf("chain %s at seq %d: %v", e.Chain, e.At, e.Kind)
	if e.Stream != "" {
		s += fmt.Sprintf(": stream %q", e.Stream)
	}
	if e.Key != "" {
		s += ": object " + e.Key
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	switch {
	case errors.Is(e.Kind, ErrTrimmed), e.Accepted():
		s += fmt.Sprintf("; scan from %d on", e.First)
	case errors.Is(e.Kind, ErrLost), errors.Is(e.Kind, ErrCorrupt):
		s += "; run strandline fsck to see what else is affected"
	}
	return s
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *ScanError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Accepted says whether an operator gave the row up as lost: First is behind it.
func (e *ScanError) Accepted() bool { return errors.Is(e.Kind, ErrLost) && e.First != 0 }
