package column

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
)

// Scan reads the columns of the row that a query is at.
type Scan = func(...any) error

// JSON is a value as one column, or one argument, has it.
func JSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("argument: %w", err)
	}
	return string(b), nil
}

// FromJSON is the inverse of JSON; what says whose column it is.
func FromJSON(what, s string, v any) error {
	if err := json.Unmarshal([]byte(s), v); err != nil {
		return fmt.Errorf("%w: %s %q does not decode: %w", catalog.ErrCorrupt, what, s, err)
	}
	return nil
}

// One is the row of a query for one, nil if there is none.
func One[T any](rows []T) *T {
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}

// Nanos is a time as a column has it; 0 is no time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// At is the inverse of Nanos.
func At(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
