package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// shardOut is a shard as its writer sees it.
type shardOut struct {
	Epoch        segment.Epoch   `json:"epoch"`
	Shard        segment.Shard   `json:"shard"`
	State        localtier.State `json:"state"`
	Term         segment.Term    `json:"term"`
	NextSeq      segment.Seq     `json:"next_seq"`
	Unpublished  int             `json:"unpublished_segments"`
	UnpublishedB int64           `json:"unpublished_bytes"`
	Hydrated     int             `json:"hydrated"`
	HydrateTotal int             `json:"hydrate_total"`
	Consumers    []consumerOut   `json:"consumers"`
	LastError    string          `json:"last_error,omitempty"`
	Dir          string          `json:"dir"`
	Log          logOut          `json:"log"`
}

// logOut are the local log's counters since it was opened.
type logOut struct {
	Appends       int64   `json:"appends_total"` // frames
	Rows          int64   `json:"rows_total"`
	Bytes         int64   `json:"bytes_total"`
	Refused       int64   `json:"refused_total"` // appends that met backpressure
	Syncs         int64   `json:"syncs_total"`   // fdatasync calls
	SyncSeconds   float64 `json:"sync_seconds_sum"`
	SyncMax       float64 `json:"sync_seconds_max"`
	Unflushed     int64   `json:"unflushed_bytes"`
	Disk          int64   `json:"disk_bytes"`
	Spare         int64   `json:"spare_bytes"` // in files kept to be written over
	Segments      int64   `json:"segment_count"`
	Rollbacks     int64   `json:"rollbacks_total"`
	IndexFailures int64   `json:"index_failures_total"`
	Recovery      float64 `json:"recovery_seconds"`
}

func logOf(m wal.Metrics) logOut {
	return logOut{
		Appends: m.Frames, Rows: m.Rows, Bytes: m.Bytes, Refused: m.Refused,
		Syncs: m.Syncs, SyncSeconds: m.SyncTime.Seconds(), SyncMax: m.SyncMax.Seconds(),
		Unflushed: m.Unflushed, Disk: m.DiskBytes, Spare: m.SpareBytes, Segments: m.SegmentCount,
		Rollbacks: m.Rollbacks, IndexFailures: m.IndexFailures, Recovery: m.Recovery.Seconds(),
	}
}

type consumerOut struct {
	Name   string      `json:"name"`
	Cursor segment.Seq `json:"cursor"`
	Lag    uint64      `json:"lag"`
}

// shardsOf is what /v1/shards answers.
func shardsOf(w httpapi.Consumers) []shardOut {
	out := []shardOut{}
	for _, st := range w.Status() {
		s := shardOut{
			Epoch: st.Chain.Epoch, Shard: st.Chain.Shard, State: st.State, Term: st.Term, NextSeq: st.NextSeq,
			Unpublished: st.UnpublishedSegments, UnpublishedB: st.UnpublishedBytes,
			Hydrated: st.Hydrated, HydrateTotal: st.HydrateTotal, LastError: st.LastError, Dir: st.Dir, Consumers: []consumerOut{}, Log: logOf(st.Log),
		}
		for _, c := range st.Consumers {
			s.Consumers = append(s.Consumers, consumerOut{c.Name, c.Cursor, c.Lag})
		}
		out = append(out, s)
	}
	return out
}

// consumersIn are a chain row's, as of its last absorbed slot.
func consumersIn(r *catalog.ChainRow) []consumerOut {
	last := max(r.NextSeq, 1) - 1
	out := []consumerOut{}
	for _, c := range r.Consumers {
		out = append(out, consumerOut{c.Name, c.Cursor, uint64(max(last, c.Cursor) - c.Cursor)})
	}
	return out
}

// askTime bounds the wait for a writer that may be stuck.
const askTime = 3 * time.Second

// askWriters adds what the living writers answer. One that does not is no reason to
// show nothing.
func (a *app) askWriters(ctx context.Context, st *statusOut, caller *callerFlags) {
	var asked []string
	for _, c := range st.Chains {
		if c.Address == "" || c.Closed || !st.Time.Before(c.LeaseEnd) || slices.Contains(asked, c.Address) {
			continue
		}
		asked = append(asked, c.Address)
		got, err := a.askWriter(ctx, c.Address, caller)
		if err != nil {
			if st.Silent == nil {
				st.Silent = map[string]string{}
			}
			st.Silent[c.Address] = err.Error()
			continue
		}
		st.Shards = append(st.Shards, got...)
	}
	slices.SortFunc(st.Shards, func(x, y shardOut) int { return int(x.Shard) - int(y.Shard) })
}

func (a *app) askWriter(ctx context.Context, address string, caller *callerFlags) ([]shardOut, error) {
	c, err := a.newClient(address, caller)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var got []shardOut
	err = asked(c.Shards(ctx, &got))
	return got, err
}

// quarantineOf looks below --dir.
func (st *statusOut) quarantineOf(ctx context.Context, t *tier) error {
	if t.dir == "" {
		return nil
	}
	dir := filepath.Join(t.dir, writerDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	list, err := localtier.ListQuarantine(ctx, dir)
	for i := range list {
		st.Quarantine = append(st.Quarantine, quarantineOf(&list[i]))
	}
	return err
}

// printWriters prints consumers, writers and quarantine, each if there is any.
func (a *app) printWriters(st *statusOut) error {
	rows := [][]string{{"CONSUMER", "CHAIN", "CURSOR", "ROWS BEHIND"}}
	for _, c := range st.Chains {
		chain, list := segment.Chain{Epoch: c.Epoch, Shard: c.Shard}, c.Consumers
		for _, s := range st.Shards {
			if s.Epoch == c.Epoch && s.Shard == c.Shard {
				list = s.Consumers // as of now
			}
		}
		for _, k := range list {
			rows = append(rows, []string{k.Name, chain.String(), num(k.Cursor), countText(int64(k.Lag))})
		}
	}
	if err := a.section(rows); err != nil {
		return err
	}
	rows = [][]string{{"WRITER OF", "STATE", "NEXT SEQ", "UNPUBLISHED", "HYDRATED", "LAST ERROR"}}
	for _, s := range st.Shards {
		hydrated := "-"
		if s.HydrateTotal > 0 {
			hydrated = fmt.Sprintf("%d/%d", s.Hydrated, s.HydrateTotal)
		}
		rows = append(rows, []string{
			segment.Chain{Epoch: s.Epoch, Shard: s.Shard}.String(), string(s.State), num(s.NextSeq),
			bytesText(s.UnpublishedB), hydrated, s.LastError,
		})
	}
	if err := a.section(rows); err != nil {
		return err
	}
	for _, address := range sorted(st.Silent) {
		fmt.Fprintf(a.out, "the writer at %s does not answer: %s\n", address, st.Silent[address])
	}
	rows = [][]string{{"QUARANTINE", "ROWS", "BYTES", "STATE"}}
	for _, q := range st.Quarantine {
		rows = append(rows, []string{q.Dir, countText(int64(q.Rows)), bytesText(q.Bytes), q.State})
	}
	return a.section(rows)
}

// section prints a table with a line before it, if it has more than its head.
func (a *app) section(rows [][]string) error {
	if len(rows) < 2 {
		return nil
	}
	fmt.Fprintln(a.out)
	return table(a.out, rows)
}
