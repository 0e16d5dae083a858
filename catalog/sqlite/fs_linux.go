package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
)

// checkFS refuses network file systems: their locks or shared memory lie.
func checkFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%w: file system of %s: %w", catalog.ErrUnavailable, dir, err)
	}
	if name := networkFS(int64(st.Type) & 0xffffffff); name != "" { //nolint:unconvert // int32 on some architectures
		return fmt.Errorf("%w: %s is on %s: SQLite's locks do not hold there; put the catalog on a local disk, or use postgres://",
			catalog.ErrInvalid, dir, name)
	}
	return nil
}

// networkFS names the network file system of a statfs magic, "" for local ones.
func networkFS(magic int64) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.V9FS_MAGIC:
		return "9P"
	case unix.CEPH_SUPER_MAGIC:
		return "CephFS"
	case unix.AFS_SUPER_MAGIC:
		return "AFS"
	}
	return ""
}
