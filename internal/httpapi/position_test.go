package httpapi

import (
	"testing"

	"github.com/strandline/strandline/segment"
)

// TestPositionOf: a bare seq is of the server's epoch, EPOCH.SEQ of its own, and neither is
// held against a history.
func TestPositionOf(t *testing.T) {
	for text, want := range map[string]segment.Pos{
		"7": {Epoch: 2, Seq: 7}, "1.7": {Epoch: 1, Seq: 7}, "3.18446744073709551615": {Epoch: 3, Seq: 18446744073709551615},
	} {
		if got, tok, err := positionOf("after", text, 2); err != nil || tok != nil || got != want {
			t.Errorf("%s: %v, %v, %v", text, got, tok, err)
		}
	}
	if got, tok, err := positionOf("after", "e1.t4.7", 2); err != nil || tok == nil || got != (segment.Pos{Epoch: 1, Seq: 7}) {
		t.Errorf("a token: %v, %v, %v", got, tok, err)
	}
	for _, text := range []string{"0", "1.0", "0.1", "1.", ".1", "+1", "+1.1", "1.+1", "1.2.3", "4294967296.1", "-1", "x", "1.x"} {
		if got, _, err := positionOf("from", text, 2); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
