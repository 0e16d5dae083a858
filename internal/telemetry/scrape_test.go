package telemetry

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/internal/objcache/instance"
	"github.com/strandline/strandline/internal/otlp"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg Config) *Provider {
	t.Helper()
	if cfg.Command == "" {
		cfg.Command = Up
	}
	p, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// scrape parses what /metrics answers, as Prometheus does.
func scrape(t *testing.T, p *Provider) map[string]*dto.MetricFamily {
	t.Helper()
	rec := httptest.NewRecorder()
	p.Metrics().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(rec.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value of a series; labels as name=value.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	f := families[name]
	if f == nil {
		t.Fatalf("no %s", name)
	}
	for _, m := range f.Metric {
		have := map[string]bool{}
		for _, l := range m.Label {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && have[l]
		}
		switch {
		case !all:
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	t.Fatalf("%s has no series with %v: %v", name, labels, f.Metric)
	return 0
}

// shards is a writer at one moment.
type shards []localtier.ShardStatus

func (s shards) Status() []localtier.ShardStatus { return s }
func (s shards) Quarantined() (int64, error)     { return 77, nil }

// everything is a source of each kind, with a number in each place.
func everything(t *testing.T, now time.Time) Sources {
	t.Helper()
	mem := memstore.New(memstore.Options{})
	store, err := objstore.New(mem, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cached := objcache.Wrap(mem, objcache.Config{Instances: []string{"127.0.0.1:1"}, Bucket: "b", Cacheable: func(string) bool { return true }, Reads: true})
	through, err := objstore.New(cached, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = through.Close() })
	if _, err := store.PutOnce(t.Context(), "meta/strandline", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	_, _ = store.Head(t.Context(), "meta/absent")
	status := localtier.ShardStatus{
		Chain: segment.Chain{Epoch: 1, Shard: 2}, State: localtier.StateLeaseLost, Term: 3, NextSeq: 100, LeaseEnd: now.Add(-time.Second),
		UnpublishedBytes: 5, UnpublishedSegments: 1, Unabsorbed: 40, UnabsorbedSince: now.Add(-90 * time.Second), Behind: now.Add(-time.Minute),
		Consumers: []localtier.ConsumerStatus{{Name: "a", Lag: 7}, {Name: "b", Lag: 9}}, Hydrated: 1, HydrateTotal: 2, Owed: 4, Corrupt: 1, LastAbsorbed: now,
		Log: wal.Metrics{Frames: 11, Syncs: 3, SyncTime: time.Second, SyncBuckets: []int64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0}, Checkpoint: wal.Offset{Segment: 6, Byte: 7}},
	}
	sum := auditor.Summary{
		Lost: 2,
		Duties: map[string]auditor.DutySummary{"settle": {
			Started: 5, Completed: 4, Failed: 1, Items: 9, Outcomes: map[string]int{"batch": 4}, Kept: map[string]int{"young": 1},
			Through: 10, ServerSide: 20, Requests: map[string]int64{"get": 3}, LastSuccess: now, DebtAge: 12, Standing: 5, Due: 2, Bytes: 30,
		}},
		Holds: []string{auditor.HoldClock}, Auditors: 2, Garbage: map[string]int64{auditor.GarbageGrace: 8, auditor.GarbageInner: 9},
		Budget: &auditor.BudgetSummary{Auditors: 2, BytesPerSecond: 100, Requests: 5, WaitedSeconds: 3},
	}
	rows := []catalog.ChainRow{
		{Chain: segment.Chain{Epoch: 1, Shard: 2}, LeaseEnd: now.Add(time.Minute), AbsorbedEnd: 10, Rewritten: 8, Condemned: 7, Trimmed: 5, CondemnedAt: now.Add(-30 * time.Second), NextSeq: 61, WatermarkSeq: 20, TransitBytes: 999, TransitSince: now.Add(-2 * time.Minute)},
		{Chain: segment.Chain{Epoch: 1, Shard: 3}, AbsorbedEnd: 2, Rewritten: 2, Condemned: 2, Trimmed: 2, NextSeq: 31, Consumers: []segment.Consumer{{Name: "c", Cursor: 10}}},
		{Chain: segment.Chain{Epoch: 1, Shard: 4}, AbsorbedEnd: 2, Rewritten: 2, Condemned: 2, Trimmed: 2, Closed: true},
	}
	return Sources{
		Ready: func() error { return nil }, Writer: func() Shards { return shards{status} }, Disk: &Disk{Dir: t.TempDir(), MinFree: 6, QuarantineMax: 8},
		Auditor: func() auditor.Summary { return sum }, Chains: func(context.Context) ([]catalog.ChainRow, error) { return rows, nil },
		OTLP:   func() otlp.Counts { return otlp.Counts{Taken: 1, Later: 2, Records: 3} },
		Pool:   func() catalog.Pool { return catalog.Pool{Open: 3, InUse: 1, Max: 4, Waits: 2, Waited: time.Second} },
		Stores: func() []*objstore.Store { return []*objstore.Store{store, through} },
		Cache: func() instance.Stats {
			return instance.Stats{Bytes: 1, Max: 2, Hits: 3, Unkept: 5, WriteErrors: 2}
		},
	}
}

// passed are the events that are recorded as they happen.
func passed(t *testing.T, p *Provider) {
	t.Helper()
	h := p.Wrap("GET /v1/streams/{stream}/rows", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/streams/some-name/rows", nil))
	if _, err := p.Duty(t.Context(), "settle", func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
}

func isOurs(name string) bool { return strings.HasPrefix(name, "strandline_") }
