//go:build unix

package filewatch

import (
	"os"
	"syscall"
)

// Open opens a file that is watched, for reading. It never waits: a named pipe that somebody
// put in the file's place would hold its reader until a writer comes, and with it every later
// change of the file, a token that is taken back among them, and the end of the process.
func Open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:wrapcheck // it names the file
}
