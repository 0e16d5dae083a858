package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// topologyFlags are the knobs of `topology set`.
type topologyFlags struct {
	backend  backendFlags
	shards   uint32
	class    string
	settle   bool
	mode     string
	rows     uint64
	bytes    sizeFlag
	age      time.Duration
	segments uint64
	size     sizeFlag
	least    uint64
	drain    time.Duration
	dryRun   bool
	given    func(string) bool
}

func (a *app) topologyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Epochs: shard counts, classes and what their chains may give up",
		Long: "An epoch is one version of the topology. Its shard count, its class with the buckets, and whether it is settled are for\n" +
			"good; another one is a new epoch, and the streams go on in it. Retention belongs to the epoch, too, and may change at any time.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.topologyShow(), a.topologySet())
	return cmd
}

func (a *app) topologyShow() *cobra.Command {
	var b backendFlags
	cmd := &cobra.Command{
		Use: "show", Short: "List the epochs with their state, shards and retention", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			t, err := b.open(cmd.Context(), modeRead)
			if err != nil {
				return err
			}
			defer func() { err = closing(err, t) }()
			epochs, err := epochsOf(cmd.Context(), t)
			if err != nil {
				return err
			}
			return a.printEpochs(epochs)
		},
	}
	b.register(cmd.Flags())
	return cmd
}

func (a *app) topologySet() *cobra.Command {
	f := &topologyFlags{}
	cmd := &cobra.Command{
		Use: "set", Short: "Change shard count, class or settling, or what the chains may give up",
		Long: "Another --shards, --class or --settle makes a new epoch: the present one stops taking rows (appends are told to come again), its writers get\n" +
			"--drain to publish what they have and let go, each of its chains is closed, and the new epoch opens; running writers go on\n" +
			"with their share of it. It may be stopped at any point and run again with the same flags, and goes on where it was.\n" +
			"After --drain chains are taken over: what their owner did not publish by then goes to its quarantine.\n" +
			"On a catalog and a bucket that are empty it founds the deployment.\n\n" +
			"--retention interest gives up what every durable consumer of a shard has acknowledged; if limits are set, of that only what\n" +
			"lies beyond one of them (the tightest decides). Without a consumer the limits alone decide; without limits and consumers\n" +
			"nothing goes. keep (the default) keeps everything. A limit that is not given stays as it is; 0 takes it away. Retention\n" +
			"never goes past a consumer and always leaves --min-retained-segments. What was given up stays given up.\n\n" +
			"A new epoch's shards begin with the consumers of the shards that feed them, before their first row: pull and acknowledge\n" +
			"what is left of the old epoch first (consumers pull --epoch E), then the new one's; remove there who is not coming back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.setTopology(cmd.Context(), f) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *topologyFlags) register(fs *pflag.FlagSet) {
	f.given = fs.Changed
	f.backend.register(fs)
	fs.Uint32Var(&f.shards, "shards", 0, "shard count of the epoch that follows (or of a new deployment)")
	fs.StringVar(&f.class, "class", "", "class of --store whose buckets take the slots of the epoch that follows; settled objects are of class standard always")
	fs.BoolVar(&f.settle, "settle", true, "whether the auditor packs the slots of the epoch that follows; =false keeps slots until retention gives them up")
	fs.StringVar(&f.mode, "retention", "", "keep or interest")
	fs.Uint64Var(&f.rows, "retain-rows", 0, "rows of a shard before its newest so many may go")
	fs.Var(&f.bytes, "retain-bytes", "what lies before a shard's newest so many bytes, like 10GiB, may go")
	fs.DurationVar(&f.age, "retain-age", 0, "what was sealed longer ago than this may go")
	fs.Uint64Var(&f.segments, "retain-segments", 0, "what lies before a shard's newest so many full-size segments may go")
	fs.Var(&f.size, "retain-segment-size", "what counts as a full-size segment (default 64MiB)")
	fs.Uint64Var(&f.least, "min-retained-segments", 0, "full-size segments that stay in any case (default 2)")
	fs.DurationVar(&f.drain, "drain", 30*time.Second, "how long owners may take to publish and let go, before their chains are taken over")
	fs.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done; with --json a list of the steps")
}

// retentionFlags are those that make a policy.
var retentionFlags = [...]string{
	"retention", "retain-rows", "retain-bytes", "retain-age", "retain-segments", "retain-segment-size", "min-retained-segments",
}

func (f *topologyFlags) setsRetention() bool {
	for _, name := range retentionFlags {
		if f.given(name) {
			return true
		}
	}
	return false
}

// validate reports every fault at once.
func (f *topologyFlags) validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(!f.changesEpoch() && !f.setsRetention(), "give --shards, --class or --settle, or what is to be retained: --retention interest and limits, or --retention keep")
	bad(f.given("shards") && (f.shards < 1 || f.shards > catalog.MaxShards), "--shards %d: give 1 to %d", f.shards, catalog.MaxShards)
	bad(f.given("retention") && f.mode != string(catalog.RetentionKeep) && f.mode != string(catalog.RetentionInterest), "--retention %q: give keep or interest", f.mode)
	bad(f.age < 0, "--retain-age %v: give 0 or more", f.age)
	bad(f.given("retain-segment-size") && f.size < 1, "--retain-segment-size %d: give a positive one", int64(f.size))
	bad(f.given("min-retained-segments") && f.least < 1, "--min-retained-segments 0: one is the least, or a shard could give up its newest rows")
	bad(f.drain < 0, "--drain %v: give 0 or more", f.drain)
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

// policy is the standing one with what was given.
func (f *topologyFlags) policy(r catalog.Retention) (catalog.Retention, error) {
	for _, set := range []struct {
		flag string
		do   func()
	}{
		{"retention", func() { r.Mode = catalog.RetentionMode(f.mode) }},
		{"retain-rows", func() { r.Rows = f.rows }},
		{"retain-bytes", func() { r.Bytes = int64(f.bytes) }},
		{"retain-age", func() { r.Age = f.age }},
		{"retain-segments", func() { r.Segments = f.segments }},
		{"retain-segment-size", func() { r.SegmentBytes = int64(f.size) }},
		{"min-retained-segments", func() { r.MinSegments = f.least }},
	} {
		if f.given(set.flag) {
			set.do()
		}
	}
	if r.Keeps() && f.setsRetention() && !f.given("retention") {
		return r, usage("the chains keep everything: limits count only with --retention interest")
	}
	return r, nil
}

// epochOut is an epoch for machines.
type epochOut struct {
	Epoch     segment.Epoch         `json:"epoch"`
	State     catalog.TopologyState `json:"state"`
	Shards    uint32                `json:"shards"`
	Closed    int                   `json:"closed_chains"`
	Class     segment.Class         `json:"class"`
	Buckets   []string              `json:"buckets"`
	Settle    bool                  `json:"settle"`
	Retention retentionOut          `json:"retention"`
}

type retentionOut struct {
	Mode         catalog.RetentionMode `json:"mode"`
	Rows         uint64                `json:"rows,omitempty"`
	Bytes        int64                 `json:"bytes,omitempty"`
	Age          string                `json:"age,omitempty"`
	Segments     uint64                `json:"segments,omitempty"`
	SegmentBytes int64                 `json:"segment_bytes"`
	MinSegments  uint64                `json:"min_segments"`
}

func retentionOf(r catalog.Retention) retentionOut {
	out := retentionOut{
		Mode: r.Mode, Rows: r.Rows, Bytes: r.Bytes, Segments: r.Segments,
		SegmentBytes: r.SegmentBytes, MinSegments: r.MinSegments,
	}
	if out.Mode == "" {
		out.Mode = catalog.RetentionKeep
	}
	if r.Age > 0 {
		out.Age = r.Age.String()
	}
	if out.SegmentBytes == 0 {
		out.SegmentBytes = catalog.DefaultSegmentBytes
	}
	if out.MinSegments == 0 {
		out.MinSegments = catalog.DefaultMinSegments
	}
	return out
}

func (r retentionOut) String() string {
	if r.Mode != catalog.RetentionInterest {
		return string(r.Mode)
	}
	var limits []string
	limit := func(set bool, format string, args ...any) {
		if set {
			limits = append(limits, fmt.Sprintf(format, args...))
		}
	}
	limit(r.Rows > 0, "beyond %s", countOf(r.Rows, "row"))
	limit(r.Bytes > 0, "beyond %s", bytesText(r.Bytes))
	limit(r.Age != "", "older than %s", r.Age)
	limit(r.Segments > 0, "beyond %s", countOf(r.Segments, "segment"))
	what := "what consumers passed"
	if len(limits) > 0 {
		what += " and is " + strings.Join(limits, " or ")
	}
	return fmt.Sprintf("%s, but %s of %s", what, countOf(r.MinSegments, "segment"), bytesText(r.SegmentBytes))
}

func (a *app) printEpochs(epochs []epochOut) error {
	if a.json {
		return a.printJSON(epochs)
	}
	rows := [][]string{{"EPOCH", "STATE", "SHARDS", "CLOSED", "CLASS", "GIVES UP"}}
	for _, e := range epochs {
		gives := "nothing"
		if e.Retention.Mode == catalog.RetentionInterest {
			gives = e.Retention.String()
		} else if e.Retention.Mode != catalog.RetentionKeep {
			gives = fmt.Sprintf("nothing (mode %q)", string(e.Retention.Mode))
		}
		rows = append(rows, []string{num(e.Epoch), string(e.State), num(e.Shards), num(e.Closed), string(e.Class), gives})
	}
	return table(a.out, rows)
}
