package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/strandline/strandline/segment"
)

// A person ends a follow by a signal: that is no fault, and nothing is said.
func TestFollowEnds(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir)
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"append", "s", "--server", up.url, "--ack", "shared"}, streams{in: strings.NewReader("one\n"), out: io.Discard, err: &errs}); code != exitOK {
		t.Fatalf("append: exit %d: %s", code, &errs)
	}
	for name, args := range map[string][]string{
		"by a server":     {"cat", "s", "--follow", "--server", up.url},
		"from the bucket": {"cat", "s", "--follow", "--dir", dir},
		"a shard":         {"scan", fmt.Sprint(segment.ShardOf("s", defaultShards)), "--follow", "--server", up.url},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			out, in := io.Pipe()
			var errs bytes.Buffer
			code := make(chan int, 1)
			go func() {
				defer in.Close()
				code <- run(ctx, args, streams{out: in, err: &errs})
			}()
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "one") {
				t.Errorf("%q, %v", line, err)
			}
			interrupt()
			if got := <-code; got != exitOK || errs.Len() != 0 {
				t.Errorf("exit %d, %q", got, errs.String())
			}
		})
	}
}
