package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// The media types of bodies.
const (
	ndjsonType = "application/x-ndjson"
	eventsType = "text/event-stream"
	jsonType   = "application/json"
	yamlType   = "application/yaml"
	bytesType  = "application/octet-stream"
)

// accepts says whether a request takes an answer of a type; without Accept, any.
func accepts(h http.Header, kind string) bool {
	given := h.Values("Accept")
	if len(given) == 0 {
		return true
	}
	major, _, _ := strings.Cut(kind, "/")
	for part := range strings.SplitSeq(strings.Join(given, ","), ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue
		}
		if t == kind || t == "*/*" || t == major+"/*" {
			return true
		}
	}
	return false
}

// mustAccept refuses a request that takes none of what there is.
func mustAccept(h http.Header, kinds ...string) error {
	for _, k := range kinds {
		if accepts(h, k) {
			return nil
		}
	}
	return fmt.Errorf("%w: Accept: %s; there is %s", errAccept, strings.Join(h.Values("Accept"), ", "), strings.Join(kinds, ", "))
}

// wantsEvents says whether a follower wants server-sent events: it has to say so by name.
func wantsEvents(h http.Header) (bool, error) {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		if t, _, err := mime.ParseMediaType(part); err == nil && t == eventsType && accepts(h, eventsType) {
			return true, nil
		}
	}
	return false, mustAccept(h, ndjsonType, jsonType, eventsType)
}

// formType is what curl -d says of a body when it is not told otherwise.
const formType = "application/x-www-form-urlencoded"

// mustBeJSON refuses a body that says it is something else.
func mustBeJSON(h http.Header) error {
	given := h.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	if err != nil || kind != jsonType && kind != formType {
		return fmt.Errorf("%w: %s; send %s", errMedia, given, jsonType)
	}
	return nil
}

// mustBeRows refuses an append whose body says that it is neither NDJSON nor lines as they are:
// of a JSON document, say, each line would become a row. Raw are bodies that say nothing, or
// what clients say of bytes when they are not told otherwise.
func mustBeRows(h http.Header) error {
	given := h.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	switch {
	case err != nil:
	case kind == ndjsonType, kind == bytesType, kind == formType, strings.HasPrefix(kind, "text/") && kind != "text/json":
		return nil
	}
	return fmt.Errorf("%w: %.100q; send %s for objects with a payload, text/plain or %s for lines that are the payloads as they are", errMedia, given, ndjsonType, bytesType)
}
