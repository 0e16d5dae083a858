//go:build unix

package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/segment"
)

// TestAuditorSaysWhatItHolds: an auditor whose bucket lost its stamp while it runs is ready all
// the same, and its /readyz names why it deletes nothing. It looks at stamps once a minute, and
// the test waits for that.
func TestAuditorSaysWhatItHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startUp(t, dir, "--shards", "1").end(t)
	a := start(t, "auditor", "--dir", dir)
	says := func(want bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			code, text := get(t, http.MethodGet, a.url+"/readyz", "")
			if code == http.StatusOK && strings.Contains(text, `"holds":["`+auditor.HoldNotOurs+`"]`) == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("held %t: %d %s", want, code, text)
			}
		}
	}
	says(false)
	stamp := objectFile(dir, segment.StampKey())
	if err := os.Rename(stamp, stamp+".away"); err != nil {
		t.Fatal(err)
	}
	says(true)
	cli(t, "", "ready", "--server", a.url).want(t, exitOK, "but deletes are held", auditor.HoldNotOurs)
	a.end(t)
}
