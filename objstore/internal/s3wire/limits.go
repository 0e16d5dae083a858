package s3wire

import (
	"fmt"
	"strconv"

	"github.com/strandline/strandline/objstore"
)

// MaxConcurrency bounds what a URL may ask for: each connection is a descriptor here and
// in the store.
const MaxConcurrency = 4096

// Limits is what an operator declares that a store cannot do, where its name and its
// answers do not tell. The zero value declares nothing.
type Limits struct {
	EqualParts  bool // all parts of an upload but the last must be of one length (R2)
	NoRangeCopy bool // no server-side copy of ranges
	// Concurrency is how many connections there may be at once. 0: as many as there are
	// calls, and DefaultConcurrency of them are kept ready. At least 2: a read may ask a
	// second question while its body is open.
	Concurrency int
}

// LimitOptions are the names that Option knows, for messages.
const LimitOptions = "parts, range-copy and concurrency"

// Option takes one option of a store's URL. known is false for those of others.
func (l *Limits) Option(name, value string) (known bool, err error) {
	switch name {
	case "parts":
		if value != "equal" && value != "any" {
			return true, fmt.Errorf("parts=%s: want equal or any", value)
		}
		l.EqualParts = value == "equal"
	case "range-copy":
		can, err := strconv.ParseBool(value)
		if err != nil {
			return true, fmt.Errorf("range-copy=%s: want true or false", value)
		}
		l.NoRangeCopy = !can
	case "concurrency":
		n, err := strconv.Atoi(value)
		if err != nil || n < 2 || n > MaxConcurrency {
			return true, fmt.Errorf("concurrency=%s: want 2 to %d", value, MaxConcurrency)
		}
		l.Concurrency = n
	default:
		return false, nil
	}
	return true, nil
}

// Validate holds limits that did not come from a URL to the same bounds.
func (l Limits) Validate() error {
	if l.Concurrency != 0 && (l.Concurrency < 2 || l.Concurrency > MaxConcurrency) {
		return fmt.Errorf("concurrency %d: want 2 to %d, or 0 for no limit", l.Concurrency, MaxConcurrency)
	}
	return nil
}

// Apply takes from c what was declared.
func (l Limits) Apply(c objstore.Capabilities) objstore.Capabilities {
	c.EqualParts = c.EqualParts || l.EqualParts
	c.RangeCopy = c.RangeCopy && !l.NoRangeCopy
	return c
}

// Query is the limits as options of a URL, in a fixed order.
func (l Limits) Query() []string {
	var out []string
	if l.EqualParts {
		out = append(out, "parts=equal")
	}
	if l.NoRangeCopy {
		out = append(out, "range-copy=false")
	}
	if l.Concurrency > 0 {
		out = append(out, "concurrency="+strconv.Itoa(l.Concurrency))
	}
	return out
}
