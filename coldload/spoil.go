//go:build !race

package coldload

// spoil does nothing but in race builds.
func spoil([]byte) {}
