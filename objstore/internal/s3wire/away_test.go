package s3wire

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestAwayHint: who finds no store is told what to look at, and who gave up is not.
func TestAwayHint(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unnamed := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "store", IsNotFound: true}}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"refused":   {refused, "check that the store runs"},
		"no name":   {unnamed, "correct the host"},
		"silent":    {context.DeadlineExceeded, "check that the store runs"},
		"cancelled": {context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ex := &Exchange{Op: objstore.OpPut}
			ex.attempted = true
			err := Verdict(ex, "k", &url.Error{Op: "Put", URL: "http://store/bucket/k", Err: c.err})
			if !errors.Is(err, objstore.ErrUnavailable) || !errors.Is(err, c.err) || strings.Contains(err.Error(), "http://") {
				t.Fatal(err)
			}
			if told := strings.Contains(err.Error(), "check") || strings.Contains(err.Error(), "correct"); told != (c.says != "") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: want %q in it", err, c.says)
			}
		})
	}
	ex := &Exchange{Op: objstore.OpGet}
	ex.attempted, ex.connected = true, true
	if err := Verdict(ex, "k", context.DeadlineExceeded); strings.Contains(err.Error(), "check") {
		t.Errorf("a store that was reached: %v", err)
	}
}
