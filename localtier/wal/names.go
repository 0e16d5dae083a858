package wal

import (
	"path/filepath"

	"github.com/strandline/strandline/segment"
)

// sidecarLimit bounds what is read of a sidecar. index.json is the largest: it
// may hold every durable consumer and producer, 10,000 each of at most 200
// bytes, escaped.
const sidecarLimit = 32 << 20

func segmentPath(dir string, id segment.ID) string { return filepath.Join(dir, segment.FileName(id)) }

func tornPath(dir string, id segment.ID) string { return filepath.Join(dir, segment.TornName(id)) }
