//go:build unix

package s3test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/minio/minio-go/v7"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore/internal/atonce"
)

// finding is one thing that was found of the pinned servers and client libraries, and
// that something in this module rests on: the drivers, what doctor asks, the rules on
// keys. It is seen anew with the bare libraries, without our drivers, in a line of text.
type finding struct {
	name string
	only string // one client by its name; "": both see the same
	see  func(*lab) string
	want map[realstore.Kind]string
}

// same is what both servers do; each is what MinIO and what versitygw does.
func same(text string) map[realstore.Kind]string { return each(text, text) }

func each(minio, versitygw string) map[realstore.Kind]string {
	return map[realstore.Kind]string{realstore.KindMinio: minio, realstore.KindVersitygw: versitygw}
}

// lab is where one finding is looked at: a bucket, one client, and keys of its own.
type lab struct {
	*testing.T
	ctx  context.Context
	kind realstore.Kind
	to   Target
	bare bare // the client of this run
	mini *minio.Core
	sdk  *s3.Client
	dir  string // of this finding's keys, ends in "/"
}

// Findings sees every finding again on a server. One that no longer holds fails under
// its name: what rests on it is then to be thought over, for better or worse.
func Findings(t *testing.T, s *realstore.Server) {
	to := target(t, s, "")
	mini, sdk := miniClient(t, to), sdkClient(to)
	for i, f := range allFindings() {
		for _, client := range []bare{mini, sdk} {
			if f.only != "" && f.only != client.name() {
				continue
			}
			t.Run(f.name+"/"+client.name(), func(t *testing.T) {
				l := &lab{T: t, ctx: t.Context(), kind: s.Kind, to: to, bare: client, mini: mini.Core, sdk: sdk.Client}
				if saw, want := l.look(f, fmt.Sprintf("%02d/%s", i, client.name())), f.want[s.Kind]; saw != want {
					t.Errorf("no longer so: saw %q, it was %q", saw, want)
				}
			})
		}
	}
}

// looks is how often a finding is looked at if an answer does not come: a server that
// refuses a request before its body is through may break the connection over its answer.
const looks = 5

// look sees a finding under keys of its own.
func (l *lab) look(f finding, dir string) (saw string) {
	for n := range looks {
		l.dir = fmt.Sprintf("%s/%d/", dir, n)
		if saw = f.see(l); !strings.Contains(saw, silence) {
			break
		}
	}
	return saw
}

func allFindings() []finding {
	var all []finding
	for _, some := range [][]finding{
		findingsOfWrites(), findingsOfUploads(), findingsOfCopies(), findingsOfChecksums(), findingsOfReads(), findingsOfLists(),
		findingsOfDeletes(), findingsOfKeys(), findingsOfAccess(),
	} {
		all = append(all, some...)
	}
	return all
}

func (l *lab) key(name string) string { return l.dir + name }

// must gives an ETag, or ends the test: only what a finding is about may fail in it.
func (l *lab) must(etag, said string) string {
	l.Helper()
	if said != "ok" {
		l.Fatalf("a step before what is looked at: %s", said)
	}
	return etag
}

// holds says what a key's object is: its bytes, or why there is none.
func (l *lab) holds(key string) string {
	body, said := l.bare.get(key, "", cond{})
	if said != "ok" {
		return said
	}
	return "holds " + body
}

// saidOf puts an answer into words: "ok", or status and code.
func saidOf(err error) string {
	if err == nil {
		return "ok"
	}
	var refused minio.ErrorResponse
	if errors.As(err, &refused) {
		return strings.TrimSpace(fmt.Sprintf("%d %s", refused.StatusCode, refused.Code))
	}
	if said := sdkSaid(err); said != "" {
		return said
	}
	return silence + err.Error()
}

// silence begins what is said of a request without an answer.
const silence = "no answer: "

// tally runs f(0) … f(n-1) at once and counts what they said: "7 412 …, 1 ok".
func tally(n int, f func(i int) string) string {
	counts := make(map[string]int)
	for _, said := range atonce.Run(n, f) {
		counts[said]++
	}
	return countsOf(counts)
}
