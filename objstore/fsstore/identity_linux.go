package fsstore

import "golang.org/x/sys/unix"

// identity tells one directory from another that later has its path, and perhaps
// its inode number.
type identity struct {
	major, minor uint32
	ino          uint64
	sec          int64
	nsec         uint32
}

// identify looks at a directory; ok is false where the file system does not keep
// times of birth, and nothing can be told apart.
func identify(path string) (id identity, ok bool) {
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, want, &st) != nil || st.Mask&want != want {
		return identity{}, false
	}
	return identity{major: st.Dev_major, minor: st.Dev_minor, ino: st.Ino, sec: st.Btime.Sec, nsec: st.Btime.Nsec}, true
}
