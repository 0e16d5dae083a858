//go:build unix

package faultproxy

import (
	"net/http"
	"slices"

	"github.com/strandline/strandline/objstore"
)

var (
	reads = []objstore.Op{objstore.OpGet, objstore.OpHead, objstore.OpList, objstore.OpListUploads}
	// writes are the mutations that may be applied unseen without a trace. A
	// create-upload that was, leaves an upload which nobody recorded.
	writes = []objstore.Op{
		objstore.OpPut, objstore.OpDelete, objstore.OpUploadPart, objstore.OpCopyPart, objstore.OpComplete, objstore.OpAbort,
	}
	bodies = []objstore.Op{objstore.OpPut, objstore.OpUploadPart}
	every  = slices.Concat(reads, writes, []objstore.Op{objstore.OpCreateUpload})
)

func without(ops []objstore.Op, op objstore.Op) []objstore.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o objstore.Op) bool { return o == op })
}

// share strikes about one in n requests, by a seed, with all that a Store must absorb
// without a word to its caller.
func share(seed uint64, n int) []*Rule {
	rules := []*Rule{
		{Name: "500", Ops: every, Fault: InternalError()},
		{Name: "503", Ops: every, Fault: SlowDown(0)},
		{Name: "503 of a proxy", Ops: every, Fault: Page(http.StatusServiceUnavailable)},
		{Name: "429", Ops: every, Fault: TooMany()},
		{Name: "reset", Ops: every, Fault: Reset{}},
		{Name: "404 of a proxy", Ops: every, Fault: Page(http.StatusNotFound)},
		{Name: "login page", Ops: every, Fault: Page(http.StatusOK)},
		// An abort needs no more than 200 to be believed.
		{Name: "empty 200", Ops: without(every, objstore.OpAbort), Fault: Empty(http.StatusOK)},
		{Name: "reset in a body", Ops: bodies, Fault: Reset{After: 100}},
		{Name: "cut request", Ops: bodies, Fault: CutRequest{After: 100}},
		{Name: "damaged request", Ops: bodies, Fault: FlipRequest{At: Byte(3)}},
		{Name: "answer dropped", Ops: writes, Fault: DropAnswer{}},
		{Name: "500 after", Ops: writes, Fault: InternalError().Applied()},
		{Name: "503 after", Ops: writes, Fault: SlowDown(0).Applied()},
		{Name: "error in a 200", Ops: writes, Fault: ErrorIn200("InternalError").Applied()},
		{Name: "twice", Ops: writes, Fault: Duplicate{}},
		{Name: "conflict", Ops: without(writes, objstore.OpComplete), Fault: Conflict("OperationAborted")},
		{Name: "cut answer", Ops: []objstore.Op{objstore.OpGet, objstore.OpList}, Fault: CutBody{After: 60}},
		{Name: "cut chunked answer", Ops: []objstore.Op{objstore.OpGet, objstore.OpList}, Fault: CutBody{After: 60, Chunked: true}},
	}
	for i, r := range rules {
		r.When = Share(seed<<8+uint64(i), n*len(rules)/2) // each operation meets about half the rules
	}
	return rules
}
