package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/strandline/strandline/segment"
)

// TestPositionsThatNeverWere: a position of no epoch or no term of the deployment, and a
// range that ends before it begins, are said to be so instead of read as something else.
func TestPositionsThatNeverWere(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	r := cli(t, "a\nb\nc\n", "append", "s", "--server", up.url, "--ack", "shared", "--json")
	var got appended
	if r.want(t, exitOK); json.Unmarshal([]byte(r.out), &got) != nil {
		t.Fatal(r.out)
	}
	d := []string{"--dir", dir}
	never := segment.Token{Epoch: 1, Term: got.Term + 1, Seq: 1}.String()
	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{"cat", "s", "--from", never}, []string{never, "never had a term", "newest is"}},
		{[]string{"scan", "0", "--from", never}, []string{never, "never had a term"}},
		{[]string{"trim", "s", never}, []string{never, "never had a term"}},
		{[]string{"consumers", "create", "0", "c", "--after", never}, []string{never, "never had a term"}},
		{[]string{"consumers", "ack", "0", "c", never}, []string{never, "never had a term"}},
		{[]string{"cat", "s", "--from", "e2.t1.1"}, []string{"--from e2.t1.1", "no epoch 2", "strandline topology show"}},
		{[]string{"cat", "s", "--to", "2.1"}, []string{"--to 2.1", "no epoch 2", "strandline topology show"}},
		{[]string{"trim", "s", "e2.t1.1"}, []string{"POS e2.t1.1", "strandline topology show"}},
		{[]string{"scan", "0", "--from", "e2.t1.1"}, []string{"another epoch"}},
		{[]string{"cat", "s", "--from", "3", "--to", "2"}, []string{"--to 1.2", "--from 1.3"}},
		{[]string{"scan", "0", "--from", "3", "--to", "2"}, []string{"--to 1.2", "--from 1.3"}},
	} {
		r := cli(t, "", with(c.args, d...)...)
		if r.want(t, exitUsage, c.texts...); r.out != "" {
			t.Errorf("%v prints %s", c.args, r.out)
		}
	}
	if r := cli(t, "", with([]string{"cat", "s", "--from", "2", "--to", "2"}, d...)...); r.code != exitOK || r.out != "b\n" {
		t.Errorf("one row: %+v", r)
	}
	up.end(t)
	// A term that was resumed, and one that has appended nothing yet, are positions.
	startUp(t, dir)
	for _, tok := range []string{got.LastToken, never} {
		cli(t, "", with([]string{"cat", "s", "--from", tok}, d...)...).want(t, exitOK, "c\n")
	}
}

// TestHelpOfJSON: where errors go is said where it is asked.
func TestHelpOfJSON(t *testing.T) {
	if r := cli(t, "", "cat", "--help"); r.code != exitOK || !strings.Contains(r.out, "errors are plain text on stderr") {
		t.Errorf("%+v", r)
	}
}
