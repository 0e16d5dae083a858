package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/segment"
)

// statusOut is the form of status --json.
type statusOut struct {
	Time           time.Time              `json:"time"`
	Deployment     segment.UUID           `json:"deployment"`
	ReadGrace      string                 `json:"read_grace"`
	OrphanGrace    string                 `json:"orphan_grace"`
	Chains         []chainOut             `json:"chains"`
	Streams        int64                  `json:"streams"`
	DeletedStreams int64                  `json:"deleted_streams"`
	Refs           map[string]int64       `json:"refs"`
	Markers        map[string]markersOut  `json:"markers"`
	Intents        map[string]int64       `json:"intents"`
	Objects        map[string]check.Count `json:"objects"`
	Auditors       int                    `json:"auditors"`
	Epochs         []epochOut             `json:"epochs"`
	Alarms         []alarmOut             `json:"alarms"` // the latest of the audit table
	// Untaken are the shards of the open epoch that no living writer has; nil: each is taken.
	Untaken *untaken `json:"untaken,omitempty"`
	// Shards as their writers see them, each asked over HTTP: those that answered.
	Shards []shardOut `json:"shards"`
	// Silent are the addresses of living writers that did not answer, and why.
	Silent map[string]string `json:"silent,omitempty"`
	// Left are the shards that the disk of the writer that was asked (GET /v1/status) has
	// unpublished rows of, and it was not started with.
	Left []leftShard `json:"left_behind,omitempty"`
	// RewritingHeld is why the auditor of an up settles nothing (GET /v1/status).
	RewritingHeld string `json:"rewriting_held,omitempty"`
	// Quarantine of --dir, if it has a writer's directory.
	Quarantine []quarantineOut `json:"quarantine,omitempty"`
}

type chainOut struct {
	Epoch       segment.Epoch `json:"epoch"`
	Shard       segment.Shard `json:"shard"`
	Owner       segment.UUID  `json:"owner"`
	Address     string        `json:"address,omitempty"`
	Term        segment.Term  `json:"term"`
	LeaseEnd    time.Time     `json:"lease_end"`
	NextSeq     segment.Seq   `json:"next_seq"`
	AbsorbedEnd segment.ID    `json:"absorbed_end"`
	Rewritten   segment.ID    `json:"rewritten"`
	Condemned   segment.ID    `json:"condemned"`
	Trimmed     segment.ID    `json:"trimmed"`
	Watermark   segment.Seq   `json:"watermark_seq"`
	Consumers   []consumerOut `json:"consumers"` // as of the last absorbed slot
	Transit     int64         `json:"transit_bytes"`
	Closed      bool          `json:"closed"`
}

type markersOut struct {
	Standing  int64      `json:"standing"`
	Due       int64      `json:"due"`
	Oldest    *time.Time `json:"oldest_due,omitempty"`
	Attempts  int64      `json:"attempts"`
	LastError string     `json:"last_error,omitempty"`
}

func (a *app) statusCommand() *cobra.Command {
	var b backendFlags
	var caller callerFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Epochs, chains with cursors and consumers, markers by duty, intents, objects by kind, writers",
		Long: "Reads catalog and bucket; no server is needed. Living writers are asked for what only they know: rows not published yet,\n" +
			"how far a new owner has filled its disk (hydrated), consumers as of now. One that does not answer is named.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			st, err := statusOf(cmd.Context(), t)
			if err != nil {
				return err
			}
			a.askWriters(cmd.Context(), st, &caller)
			if err := st.quarantineOf(cmd.Context(), t); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(st)
			}
			return a.printStatus(st)
		},
	}
	b.register(cmd.Flags())
	caller.register(cmd.Flags())
	return cmd
}

func statusOf(ctx context.Context, t *tier) (*statusOut, error) {
	st, err := t.catalog.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := countsOf(&st)
	rows, err := t.catalog.Chains(ctx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		out.Chains = append(out.Chains, chainOf(&rows[i]))
	}
	if out.Epochs, err = epochsOf(ctx, t); err != nil {
		return nil, err
	}
	tops, err := t.catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	out.Untaken = untakenOf(tops, rows, st.Now)
	if out.Alarms, err = recentAlarms(ctx, t.catalog); err != nil {
		return nil, err
	}
	out.Objects, err = check.Census(ctx, t.classes)
	return out, err
}

func countsOf(st *catalog.Status) *statusOut {
	out := &statusOut{
		Time: st.Now.UTC(), Deployment: st.Settings.Deployment,
		ReadGrace:   st.Settings.ReadGrace.Deleting(st.Now, catalog.DefaultReadGrace).String(),
		OrphanGrace: st.Settings.OrphanGrace.Deleting(st.Now, catalog.DefaultOrphanGrace).String(),
		Chains:      []chainOut{}, Streams: st.Streams, DeletedStreams: st.Deleted, Auditors: st.Auditors, Shards: []shardOut{},
		Refs: map[string]int64{}, Markers: map[string]markersOut{}, Intents: map[string]int64{},
	}
	for kind, n := range st.Refs {
		out.Refs[string(kind)] = n
	}
	for state, n := range st.Intents {
		out.Intents[string(state)] = n
	}
	for duty, m := range st.Markers {
		mo := markersOut{Standing: m.Standing, Due: m.Due, Attempts: m.Attempts, LastError: m.LastError}
		if !m.Oldest.IsZero() {
			oldest := m.Oldest.UTC()
			mo.Oldest = &oldest
		}
		out.Markers[string(duty)] = mo
	}
	return out
}

func chainOf(r *catalog.ChainRow) chainOut {
	return chainOut{
		Epoch: r.Epoch, Shard: r.Shard, Owner: r.Owner, Address: r.Address, Term: r.Term, LeaseEnd: r.LeaseEnd.UTC(),
		NextSeq: r.NextSeq, AbsorbedEnd: r.AbsorbedEnd, Rewritten: r.Rewritten, Condemned: r.Condemned, Trimmed: r.Trimmed,
		Watermark: r.WatermarkSeq, Consumers: consumersIn(r), Transit: r.TransitBytes, Closed: r.Closed,
	}
}

func (a *app) printStatus(st *statusOut) error {
	fmt.Fprintf(a.out, "deployment %s, read grace %s, orphan grace %s, %s\n", st.Deployment, st.ReadGrace, st.OrphanGrace, countOf(st.Auditors, "auditor"))
	fmt.Fprintf(a.out, "%s, %s deleted\n\n", countOf(st.Streams, "stream"), countText(st.DeletedStreams))
	if err := a.printEpochs(st.Epochs); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	if err := table(a.out, chainLines(st)); err != nil {
		return err
	}
	if st.Untaken != nil {
		fmt.Fprintf(a.out, "\n%s\n", st.Untaken)
	}
	if err := a.printWriters(st); err != nil {
		return err
	}
	for _, lines := range [][][]string{objectLines(st), dutyLines(st)} {
		fmt.Fprintln(a.out)
		if err := table(a.out, lines); err != nil {
			return err
		}
	}
	a.printAlarms(st.Alarms)
	return nil
}

// chainLines are the table of chains.
func chainLines(st *statusOut) [][]string {
	lines := [][]string{{"CHAIN", "TERM", "LEASE", "NEXT SEQ", "WATERMARK", "TRIMMED", "CONDEMNED", "REWRITTEN", "ABSORBED", "TRANSIT"}}
	for i := range st.Chains {
		c := &st.Chains[i]
		lines = append(lines, []string{
			segment.Chain{Epoch: c.Epoch, Shard: c.Shard}.String(), num(c.Term), leaseText(c, st.Time), num(c.NextSeq),
			num(c.Watermark), num(c.Trimmed), num(c.Condemned), num(c.Rewritten), num(c.AbsorbedEnd), bytesText(c.Transit),
		})
	}
	return lines
}

// leaseText says how long a chain's owner has it yet.
func leaseText(c *chainOut, now time.Time) string {
	left := c.LeaseEnd.Sub(now)
	switch {
	case c.Closed:
		return "closed"
	case c.Term == 0:
		return "none yet"
	case left > 0:
		return left.Round(time.Second).String()
	default:
		return "ended"
	}
}

// objectLines are the table of what is in the buckets.
func objectLines(st *statusOut) [][]string {
	lines := [][]string{{"OBJECTS", "COUNT", "BYTES"}}
	for _, kind := range sorted(st.Objects) {
		lines = append(lines, []string{kind, countText(st.Objects[kind].Objects), bytesText(st.Objects[kind].Bytes)})
	}
	return lines
}

// dutyLines are the table of what is owed: markers by duty, and announced objects by state.
func dutyLines(st *statusOut) [][]string {
	lines := [][]string{{"DUTY", "STANDING", "DUE NOW", "FIRST DUE", "ATTEMPTS", "LAST ERROR"}}
	for _, duty := range sorted(st.Markers) {
		m := st.Markers[duty]
		oldest := "-"
		if m.Oldest != nil {
			oldest = dueText(m.Oldest.Sub(st.Time))
		}
		lines = append(lines, []string{duty, countText(m.Standing), countText(m.Due), oldest, countText(m.Attempts), m.LastError})
	}
	for _, state := range sorted(st.Intents) {
		lines = append(lines, []string{"intent " + state, countText(st.Intents[state]), "", "", "", ""})
	}
	return lines
}

// dueText says when something is due, d from now.
func dueText(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d > 0:
		return "in " + d.String()
	case d == 0:
		return "now"
	}
	return "since " + (-d).String()
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
