// Package fsstore is a directory as a bucket, for one machine. Any number of
// processes may have the same directory open at once; network file systems are
// not supported (locks and links are not trustworthy on them).
//
//	DIR/0/1a/slot-7@        an object: name of the last segment and "@"
//	DIR/0/1a/               a directory for each other segment
//	DIR/%s%t/…              upper case is "%" and the lower-case letter, so that keys
//	                        stay apart on file systems that fold case
//	DIR/aaaa…aa+/aaa@       a segment too long for a file name, in pieces
//	DIR/@tmp/               files being written; leftovers are swept by Open after an hour
//	DIR/@uploads/ID/        an unfinished upload: its description and its parts
//	DIR/@locks/00 … 3f      flock stripes for replace and delete
//
// "@", "+" and "%" are in no key, so no two keys share a path, none is another's
// parent (a and a/b are independent), and none reaches the "@" directories.
//
// An object's file is its body, its metadata as JSON, and a footer (record.go), so
// that body, metadata and ETag become visible in one step. ETags are random, one
// per write.
//
// A create-once write is a temporary file, fsynced, then linked to its name: link(2)
// fails if the name is taken, so exactly one racer wins. Then the directory is
// fsynced, and every directory above it that this process does not know to be
// durable. Only then is the write acknowledged. Deletes remove directories that
// became empty; a put that loses its directory to that makes it again.
//
// Files: fsstore.go (Open), path.go (keys and paths), put.go, get.go, list.go, delete.go,
// upload.go and complete.go (uploads), dirs.go (what is durable), lock.go, errors.go,
// identity_*.go (two paths, one directory?), settings.go (what doctor asks).
//
// Absence is believed only while DIR/@tmp stands: a file system that was unmounted
// leaves an empty directory, which is an error here and not an empty bucket.
package fsstore
