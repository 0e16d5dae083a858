//go:build !linux

package usage

// resident is not known here.
func resident() int64 { return 0 }
