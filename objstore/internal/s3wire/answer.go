package s3wire

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"

	"github.com/strandline/strandline/objstore"
)

type errorDocument struct {
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
}

func parseError(body []byte) errorDocument {
	var doc errorDocument
	if err := xml.Unmarshal(body, &doc); err != nil {
		// A cut error document: what was read of the code is not to be trusted.
		return errorDocument{}
	}
	return doc
}

// Answer is a store's refusal, as the cause inside an objstore.Error. It holds only
// what the store said of the failure: neither credentials nor signatures.
type Answer struct {
	Status    int
	Code      string
	Message   string
	RequestID string
	Hint      string // what to do next, if it is known
}

func (a *Answer) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the store answered %d", a.Status)
	if a.Code != "" {
		fmt.Fprintf(&b, " %s", a.Code)
	}
	if a.Message != "" {
		fmt.Fprintf(&b, " (%s)", strings.TrimSuffix(a.Message, "."))
	}
	if a.RequestID != "" {
		fmt.Fprintf(&b, " [request %s]", a.RequestID)
	}
	if a.Hint != "" {
		fmt.Fprintf(&b, ": %s", a.Hint)
	}
	return b.String()
}

// deleteDocument is the answer to a bulk delete.
type deleteDocument struct {
	Deleted []struct{ Key string }
	Errors  []struct{ Key, Code, Message string } `xml:"Error"`
}

// DeleteResults reads a bulk delete's answer against what was asked: an entry for
// each key, in order. Keys that the store does not speak of are ErrAmbiguous; a key
// that it reports twice has failed if either report says so. A key that was not asked is
// ErrCorrupt for the whole call: the request changed on the way, and MinIO does not hold
// a bulk delete's body against its checksum.
func DeleteResults(ex *Exchange, asked []string, space Space) ([]objstore.DeleteResult, error) {
	var doc deleteDocument
	if err := xml.Unmarshal(ex.Document(), &doc); err != nil {
		return nil, &objstore.Error{
			Op: string(objstore.OpDelete), Key: first(asked), Kind: objstore.ErrAmbiguous,
			Err: fmt.Errorf("reading the answer: %w", err),
		}
	}
	fate := make(map[string]error, len(asked))
	ours := make(map[string]bool, len(asked))
	for _, key := range asked {
		ours[space.Full(key)] = true
	}
	for _, d := range doc.Deleted {
		if d.Key != "" && !ours[d.Key] {
			return nil, &objstore.Error{Op: string(objstore.OpDelete), Key: space.Strip(d.Key), Kind: objstore.ErrCorrupt, Err: fmt.Errorf(
				"the store deleted this key, which was not asked: bytes changed on the way; reach the store over TLS, run strandline fsck and delete again")}
		}
		fate[d.Key] = nil
	}
	for _, e := range doc.Errors {
		fate[e.Key] = keyError(e.Key, e.Code, ex.discreet(e.Message), space)
	}
	out := make([]objstore.DeleteResult, len(asked))
	for i, key := range asked {
		out[i].Key = key
		err, told := fate[space.Full(key)]
		if !told {
			err = &objstore.Error{
				Op: string(objstore.OpDelete), Key: key, Kind: objstore.ErrAmbiguous,
				Err: fmt.Errorf("the store's answer does not name this key: delete it again"),
			}
		}
		out[i].Err = err
	}
	return out, nil
}

// keyError is the fate of one key inside a bulk delete's answer. The statuses that
// the code would have had alone are not in it, so the code decides.
func keyError(full, code, message string, space Space) error {
	switch code {
	case "NoSuchKey", "NoSuchVersion":
		return nil // gone is gone
	case "":
		code = "an error without a code"
	}
	hint, kind := kindOfCode(objstore.OpDelete, code)
	if kind == nil {
		kind = objstore.ErrUnavailable // the store says that it did not delete this key
	}
	if code == "InternalError" {
		kind = objstore.ErrAmbiguous
	}
	return &objstore.Error{
		Op: string(objstore.OpDelete), Key: space.Strip(full), Kind: kind, Throttled: loadCode(code),
		Err: &Answer{Status: http.StatusOK, Code: code, Message: message, Hint: hint},
	}
}

func first(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}
