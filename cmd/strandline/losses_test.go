package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
)

// TestK34StartIsRefused on a store that ignores If-None-Match on a complete.
func TestK34StartIsRefused(t *testing.T) {
	d, err := fsstore.Open(t.TempDir(), fsstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for lies, driver := range map[bool]objstore.Driver{false: d, true: forgetful{d}} {
		store, err := objstore.New(driver, objstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		var b backendFlags
		(&proving{}).on(&b, slog.New(slog.NewTextHandler(&log, nil)), false)
		err = b.prove(t.Context(), objstore.Classes{"standard": {store}})
		if errors.Is(err, errUnfit) != lies || lies && !strings.Contains(err.Error(), "complete-once") {
			t.Errorf("lies %t: %v", lies, err)
		}
	}
}
