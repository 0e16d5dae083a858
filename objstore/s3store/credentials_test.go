//go:build unix

package s3store

import (
	"testing"

	"github.com/strandline/strandline/objstore/internal/s3test"
)

func TestCredentials(t *testing.T) { s3test.Credentials(t, openTarget) }

func TestTrust(t *testing.T) { s3test.Trust(t, openTarget, "TestTrust") }
