//go:build !unix

package filewatch

import "os"

// Open opens a file that is watched, for reading.
func Open(name string) (*os.File, error) { return os.Open(name) }
