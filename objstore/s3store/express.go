package s3store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// A directory bucket (S3 Express One Zone) is told by its name, as the SDK tells it: it
// picks the zonal endpoint, the service name of the signature and the session by the
// same suffix. What differs from a general purpose bucket:
//
//   - its address is a host name, BUCKET.s3express-ZONE.REGION.amazonaws.com, or with
//     endpoint=URL BUCKET.HOST: never a path;
//   - requests are signed with a session (session.go), range copies with the
//     credentials themselves: the SDK knows which;
//   - listings have no order, no start, and only whole directories (checkDirectory);
//   - unfinished uploads are listed by an opaque marker alone;
//   - ETags are random, which nothing of ours minds.
const expressSuffix = "--x-s3"

func isDirectoryBucket(bucket string) bool { return strings.HasSuffix(bucket, expressSuffix) }

// directoryBucket tells an S3 Express One Zone bucket.
func (d *Driver) directoryBucket() bool { return isDirectoryBucket(d.space.Bucket) }

// checkExpress refuses what no directory bucket has, before the SDK says it in its own
// words at the first request.
func (c Config) checkExpress() error {
	if !isDirectoryBucket(c.Bucket) {
		return nil
	}
	// NAME--ZONE--x-s3: the SDK reads the zone from it.
	parts := strings.Split(c.Bucket, "--")
	if len(parts) < 3 || parts[0] == "" || parts[len(parts)-2] == "" {
		return fmt.Errorf("bucket %s: the name of a directory bucket is NAME--ZONE--x-s3, as in logs--use1-az4--x-s3", c.Bucket)
	}
	if c.PathStyle {
		return errors.New("directory buckets have no path-style address: drop path-style=true")
	}
	return nil
}

// checkDirectory refuses listings that a directory bucket refuses
// (Capabilities.DirectoryPrefix); Store asks for none of them.
func (d *Driver) checkDirectory(op objstore.Op, prefix string) error {
	if !d.directoryBucket() || prefix == "" || strings.HasSuffix(prefix, "/") {
		return nil
	}
	return s3wire.Invalid(op, prefix, errors.New("a directory bucket lists whole directories: end the prefix in a slash"))
}

// expressCapabilities takes away what directory buckets cannot do.
func expressCapabilities(c objstore.Capabilities) objstore.Capabilities {
	c.OrderedList, c.StartAfter, c.DirectoryPrefix = false, false, true
	c.Append = true // by offset; declared only
	return c
}
