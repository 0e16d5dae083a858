//go:build unix

package s3store

import (
	"os"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore/internal/s3test"
)

func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }

func TestReal(t *testing.T) { s3test.Real(t, openTarget) }
