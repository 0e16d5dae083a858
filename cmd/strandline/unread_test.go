package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func TestUnreadBefore(t *testing.T) {
	tops := []catalog.Topology{{Epoch: 1, Shards: 4}, {Epoch: 2, Shards: 2}, {Epoch: 3, Shards: 6}}
	row := func(e segment.Epoch, s segment.Shard, next segment.Seq, name string, cursor segment.Seq) catalog.ChainRow {
		return catalog.ChainRow{Chain: segment.Chain{Epoch: e, Shard: s}, NextSeq: next, Consumers: []segment.Consumer{{Name: name, Cursor: cursor}}}
	}
	chains := []catalog.ChainRow{
		row(1, 0, 11, "c", 4), row(1, 1, 11, "c", 4), row(1, 2, 11, "c", 10), row(1, 3, 11, "other", 0),
		row(2, 0, 8, "c", 0), row(2, 1, 1, "c", 0), row(3, 0, 5, "c", 0),
	}
	for _, x := range []struct {
		at    int
		shard segment.Shard
		want  []unread
	}{
		{0, 0, nil},
		{1, 0, []unread{{segment.Chain{Epoch: 1, Shard: 0}, 6}}}, // shard 2 is read
		{1, 1, []unread{{segment.Chain{Epoch: 1, Shard: 1}, 6}}}, // shard 3 is another consumer's
		{2, 4, []unread{{segment.Chain{Epoch: 1, Shard: 0}, 6}, {segment.Chain{Epoch: 2, Shard: 0}, 7}}},
		{2, 5, []unread{{segment.Chain{Epoch: 1, Shard: 1}, 6}}}, // of epoch 2 nothing was ever written
	} {
		if got := unreadBefore(tops, chains, tops[x.at], x.shard, "c"); !reflect.DeepEqual(got, x.want) {
			t.Errorf("shard %d of epoch %d: %v, want %v", x.shard, tops[x.at].Epoch, got, x.want)
		}
	}
}

// TestPullNotesTheEpochBefore: until the old chain is read, who pulls from the new one is
// told that rows come before; the command that is named reads them.
func TestPullNotesTheEpochBefore(t *testing.T) {
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir())
	name := streamOf(4, 1)
	cons := func(args ...string) result {
		t.Helper()
		return cli(t, "", with(with([]string{"consumers"}, args...), tier...)...)
	}
	cli(t, "one\ntwo\n", "append", name, "--server", w.url).want(t, exitOK)
	cons("create", "1", "c").want(t, exitOK)
	if r := cons("pull", "1", "c"); r.code != exitOK || r.err != "" {
		t.Errorf("%+v", r)
	}
	cli(t, "", with([]string{"topology", "set", "--shards", "2"}, tier...)...).want(t, exitOK, "open")
	appendUntil(t, w.url, name, "three\n")
	const command = "consumers pull 1 c --epoch 1"
	now := fmt.Sprint(segment.ShardOf(name, 2))
	r := cons("pull", now, "c")
	if r.want(t, exitOK, "three"); !strings.Contains(r.err, "note: consumer c has 2 rows unread in shard 1 of epoch 1") || !strings.Contains(r.err, "strandline "+command) {
		t.Errorf("%+v", r)
	}
	if r := cons(strings.Fields(command)[1:]...); r.code != exitOK || r.err != "" || !strings.Contains(r.out, "one") || !strings.Contains(r.out, "two") {
		t.Errorf("%+v", r)
	}
	cons("ack", "1", "c", "2", "--epoch", "1").want(t, exitOK, "cursor 2")
	if r := cons("pull", now, "c"); r.code != exitOK || r.err != "" {
		t.Errorf("all is read, and yet: %+v", r)
	}
}
