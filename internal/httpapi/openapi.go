package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"
)

// openapi.yaml describes every route; tests hold it against Routes and against what is
// really asked and answered.
//
//go:embed openapi.yaml
var openAPISource []byte

func openAPIYAML() []byte { return openAPISource }

// openAPIJSON is the same as JSON, made once.
var openAPIJSON = sync.OnceValue(func() []byte {
	var doc any
	err := yaml.Unmarshal(openAPISource, &doc)
	if err == nil {
		var out []byte
		if out, err = json.Marshal(doc); err == nil {
			return out
		}
	}
	panic(fmt.Sprintf("the document of the interface: %v", err)) // a test reads it
})

// document serves one, whole.
func document(kind string, body func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body()) // a client that went away is not our fault
	}
}
