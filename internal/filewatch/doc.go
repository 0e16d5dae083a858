// Package filewatch says when files may have changed: token files and certificates that
// are replaced while a process runs.
//
// It watches the folders of the files, not the files: an editor and Kubernetes put a new
// file, or a new symbolic link, in the old one's place, and a watch on the file itself
// would go on looking at the old one. Where a file system tells nothing (NFS, a link into
// another folder) a look every few seconds finds out.
//
// It tells that something moved, not what: the caller reads its files and compares. One
// call at a time, and none after Close has returned.
package filewatch
