package s3wire

import (
	"fmt"
	"net/http"
	"time"
)

// maxSkew is how far S3 lets the clocks of client and store differ.
const maxSkew = 15 * time.Minute

// skewed says so if this machine's clock is too far from the answer's, "" otherwise.
// The refusal of a HEAD has no body to say RequestTimeTooSkewed in, and looks like a
// wrong key (K40).
func (ex *Exchange) skewed(now time.Time) string {
	date, err := http.ParseTime(ex.header.Get("Date"))
	if err != nil {
		return ""
	}
	skew := now.Sub(date).Abs()
	if skew <= maxSkew {
		return ""
	}
	return fmt.Sprintf("this machine's clock and the store's differ by %v: set the clock", skew.Round(time.Second))
}
