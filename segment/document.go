package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// A document is one JSON object on one line whose last field is its own digest:
//
//	{"version":1, …fields…,"digest":"<16 hex>"}\n
//
// The digest is the XxHash64 of the object without that field. There is one
// form only: what does not encode to the same bytes again is refused, and with
// it unknown, missing, repeated or reordered fields.
const (
	digestField = `,"digest":"`
	digestTail  = len(digestField) + 16 + len("\"}\n")
)

func encodeDocument(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	sum := xxhash.Sum64(b)
	b = append(b[:len(b)-1], digestField...)
	return fmt.Appendf(b, "%016x\"}\n", sum), nil
}

// decodeDocument decodes b into v, which holds a zero value. The version is
// looked at first, so that a newer form is told apart from damage.
func decodeDocument(b []byte, v any, what string, version int) error {
	n := len(b) - digestTail
	if n < 1 || string(b[n:n+len(digestField)]) != digestField || !bytes.HasSuffix(b, []byte("\"}\n")) {
		return corrupt(0, "%s: %d bytes are no document that ends in its digest", what, len(b))
	}
	body := append(bytes.Clone(b[:n]), '}')
	digest := string(b[n+len(digestField) : n+len(digestField)+16])
	if want := fmt.Sprintf("%016x", xxhash.Sum64(body)); digest != want {
		return corrupt(int64(n), "%s: digest is %s, its bytes have %s", what, digest, want)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return documentError(what, err)
	}
	if head.Version != version {
		return badVersion(0, what, uint64(head.Version), uint64(version))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return documentError(what, err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return documentError(what, err)
	}
	if !bytes.Equal(again, body) {
		return corrupt(0, "%s: fields are missing, repeated or out of order", what)
	}
	return nil
}

func documentError(what string, err error) error {
	e := corrupt(0, "%s", what)
	e.Err = err
	return e
}

// checkDocument turns what a document may not say into corruption.
func checkDocument(what string, err error) error {
	if err == nil {
		return nil
	}
	return documentError(what, err)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+strings.TrimSpace(format), append([]any{ErrInvalid}, args...)...)
}
