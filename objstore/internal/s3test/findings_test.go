//go:build unix

package s3test

import (
	"os"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
)

func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }

// TestFindings sees again what was found of the pinned servers, on both at once.
func TestFindings(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *realstore.Server{
		"minio": realstore.Minio, "versitygw": realstore.Versitygw,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Findings(t, server(t))
		})
	}
}
