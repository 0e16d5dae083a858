package auditbench

// Report is what a run found, as --json prints it. MB and GB are decimal, of raw rows'
// frames unless said otherwise; a peak is the most above where the measurement began, of
// all rounds; other figures are medians of the rounds.
type Report struct {
	Store  string `json:"store"`
	Prefix string `json:"prefix"` // under which everything was written, and deleted
	Cores  int    `json:"cores"`
	Quick  bool   `json:"quick"`
	Rounds int    `json:"rounds"`

	Settle  *Settle   `json:"settle,omitempty"`
	Moves   []Move    `json:"moves,omitempty"`
	Streams []Streams `json:"streams,omitempty"`
	Reap    *Reap     `json:"reap,omitempty"`
	Debt    *Debt     `json:"debt,omitempty"`

	Expected []Expected `json:"expected"`
	Notes    []string   `json:"notes,omitempty"`
}

// Expected is a figure that was aimed at, and what this run measured.
type Expected struct {
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit"`
	Least    float64 `json:"least,omitempty"` // one of the two is set
	Most     float64 `json:"most,omitempty"`
	Measured float64 `json:"measured"`
	Reached  bool    `json:"reached"`
	// Binding is false where the figure was meant for other sizes or another kind of
	// store than this run's: it is shown beside, and says nothing.
	Binding bool `json:"binding"`
}

// Memory is the peaks of a measurement.
type Memory struct {
	PeakHeapBytes     int64 `json:"peak_heap_bytes"`
	PeakResidentBytes int64 `json:"peak_resident_bytes"` // 0: this system does not tell
}

func (m *Memory) see(s spent) {
	m.PeakHeapBytes = max(m.PeakHeapBytes, s.heap)
	m.PeakResidentBytes = max(m.PeakResidentBytes, s.resident)
}

// Settle is one batch of zstd slots into stream objects and a pack.
type Settle struct {
	Slots              int     `json:"slots"`
	RawBytes           int64   `json:"raw_bytes"`
	StoredBytes        int64   `json:"stored_bytes"`
	Rows               uint64  `json:"rows"`
	Outputs            int     `json:"outputs"`
	RawMBPerSecond     float64 `json:"raw_mb_per_second"`
	RowsPerSecond      float64 `json:"rows_per_second"`
	CPUSeconds         float64 `json:"cpu_seconds"`
	CPUSecondsPerRawGB float64 `json:"cpu_seconds_per_raw_gb"`
	PutLike            int64   `json:"put_like"`
	Gets               int64   `json:"gets"`
	Memory
}

// Move is one rewrite of settled objects whose chunks are large.
type Move struct {
	Policy          string  `json:"policy"` // gc or tail-fill
	Bytes           int64   `json:"bytes"`  // stored, of the output
	ThroughBytes    int64   `json:"through_bytes"`
	ServerSideBytes int64   `json:"server_side_bytes"`
	ServerSideShare float64 `json:"server_side_share"`
	MBPerSecond     float64 `json:"mb_per_second"` // stored bytes
	CPUSeconds      float64 `json:"cpu_seconds"`
	PutLike         int64   `json:"put_like"`
	Gets            int64   `json:"gets"`
	Memory
}

// Streams is what a number of streams costs to settle: batches, and the rewrites that
// they arm.
type Streams struct {
	Streams      int   `json:"streams"`
	Batches      int   `json:"batches"`
	RawBytes     int64 `json:"raw_bytes"` // of all batches; a row counts once however often it is moved
	StoredBytes  int64 `json:"stored_bytes"`
	Objects      int   `json:"objects"` // that refs name in the end
	PutLike      int64 `json:"put_like"`
	Gets         int64 `json:"gets"`
	PackMerges   int   `json:"pack_merges"`
	TailFills    int   `json:"tail_fills"`
	MergePutLike int64 `json:"pack_merge_put_like"` // of PutLike
	MergeGets    int64 `json:"pack_merge_gets"`
	FillPutLike  int64 `json:"tail_fill_put_like"`
	FillGets     int64 `json:"tail_fill_gets"`

	PutLikePerGB   float64 `json:"put_like_per_gb"`
	GetsPerGB      float64 `json:"gets_per_gb"`
	RequestsPerGB  float64 `json:"requests_per_gb"`
	RawMBPerSecond float64 `json:"raw_mb_per_second"` // the rewrites' time included
	Memory
}

// Reap is objects that are all dead: looked at, confirmed, condemned, deleted, burned.
type Reap struct {
	Objects         int     `json:"objects"` // of a round
	ProbesPerSecond float64 `json:"probes_per_second"`
	ConfirmsPerSec  float64 `json:"confirms_per_second"` // the first pass: take, probe, confirm
	ReapsPerSecond  float64 `json:"reaps_per_second"`    // the second: take, probe, condemn, delete, burn
	// BareName deletes as many objects like them with nothing around.
	BareName             string  `json:"bare_name"`
	BareDeletesPerSecond float64 `json:"bare_deletes_per_second"`
	// Ratios are ours over bare, of the same round: the delete call within the pass, the
	// second pass, both passes.
	DeleteRatio    float64 `json:"delete_ratio"`
	ReapRatio      float64 `json:"reap_ratio"`
	TwoPassesRatio float64 `json:"two_passes_ratio"`
	Gets           float64 `json:"gets_per_object"`
	Deletes        float64 `json:"deletes_per_object"`
	Verbs          float64 `json:"verbs_per_object"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	Memory
}

// Debt is the same debt paid among so many and ten times as many standing objects.
type Debt struct {
	NewStreams  int       `json:"new_streams"`  // to settle
	DeadStreams int       `json:"dead_streams"` // to tear down and reap
	Few         DebtPaid  `json:"few"`
	Many        DebtPaid  `json:"many"`
	Ratios      DebtRatio `json:"ratios"` // many over few, of the same round
}

// DebtPaid is what it took.
type DebtPaid struct {
	StandingObjects int     `json:"standing_objects"`
	Requests        float64 `json:"requests"`
	Verbs           float64 `json:"verbs"`
	Seconds         float64 `json:"seconds"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	Memory
}

// DebtRatio compares.
type DebtRatio struct {
	Requests   float64 `json:"requests"`
	Verbs      float64 `json:"verbs"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}
