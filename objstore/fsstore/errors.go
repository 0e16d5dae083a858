package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/strandline/strandline/objstore"
)

// fsError gives an error of the file system its kind. It is for what happened
// before a change became visible; see unknown for after. A nil err stays nil.
func fsError(op, key string, err error) error {
	var typed *objstore.Error
	if err == nil || errors.As(err, &typed) {
		return err
	}
	next, kind := kindOf(err)
	if next != "" {
		err = fmt.Errorf("%w: %s", err, next)
	}
	return &objstore.Error{Op: op, Key: key, Kind: kind, Err: err}
}

// kindOf is the kind of an error, and what to do about it if there is something.
func kindOf(err error) (next string, kind error) {
	for _, c := range []struct {
		cause, kind error
		next        string
	}{
		{context.Canceled, objstore.ErrUnavailable, ""},
		{context.DeadlineExceeded, objstore.ErrUnavailable, ""},
		{errRecord, objstore.ErrCorrupt, "run strandline fsck"},
		{syscall.ENOSPC, objstore.ErrNoSpace, "free space on the bucket's file system"},
		{syscall.EDQUOT, objstore.ErrNoSpace, "raise the quota of the bucket's owner"},
		{syscall.EROFS, objstore.ErrDenied, "the bucket's file system is mounted read-only"},
		{fs.ErrPermission, objstore.ErrDenied, "check owner and mode of the bucket's directory"},
		{fs.ErrNotExist, objstore.ErrNotFound, ""},
		{syscall.ENOTDIR, objstore.ErrInvalid, "a foreign file stands in the path"},
		{syscall.EISDIR, objstore.ErrInvalid, "a foreign directory stands in the path"},
		{syscall.ENAMETOOLONG, objstore.ErrInvalid, "the bucket's directory lies too deep"},
		{syscall.EXDEV, objstore.ErrUnsupported, "the whole bucket must be one file system"},
		{syscall.EMLINK, objstore.ErrUnsupported, noLinks},
		{syscall.ENOTSUP, objstore.ErrUnsupported, noLinks},
		{syscall.ENOSYS, objstore.ErrUnsupported, noLinks},
	} {
		if errors.Is(err, c.cause) {
			return c.next, c.kind
		}
	}
	return "", objstore.ErrUnavailable
}

const noLinks = "a bucket needs hard links, flock and fsync: choose another file system"

// unknown is for a change that is visible and may not be durable.
func unknown(op objstore.Op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &objstore.Error{Op: string(op), Key: key, Kind: objstore.ErrAmbiguous, Err: fmt.Errorf("visible, but not known to be durable: %w", err)}
}
