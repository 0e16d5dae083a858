//go:build unix

package faultproxy

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/internal/realstore"
)

// TestMain stops the servers, and fails if a goroutine of a proxy or a driver is left.
func TestMain(m *testing.M) {
	code := realstore.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
