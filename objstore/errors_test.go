package objstore_test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
)

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*objstore.Error{
		"get a/b: not found": {Op: "get", Key: "a/b", Kind: objstore.ErrNotFound},
		"list: not found":    {Op: "list", Kind: objstore.ErrNotFound},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
