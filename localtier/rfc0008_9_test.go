package localtier

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// Scenario RFC0008.9, last clause: a knob out of its range, the log's included, is
// refused when a writer opens, all of them at once, before a directory is made or a
// chain is taken. The ends of each range are accepted.
func TestRFC0008_9_WriterConfig(t *testing.T) {
	tops := map[string][]Config{
		"segment-bytes":   {{WAL: wal.Config{SegmentBytes: segment.MinSegmentBytes}}, {WAL: wal.Config{SegmentBytes: segment.MaxSegmentBytes}}},
		"segment-age":     {{WAL: wal.Config{SegmentAge: time.Second}}, {WAL: wal.Config{SegmentAge: 24 * time.Hour}}},
		"batch-window":    {{WAL: wal.Config{BatchWindow: 10 * time.Second}}},
		"shared window":   {{SharedWindow: 10 * time.Second}},
		"lease time":      {{LeaseTime: time.Second}, {LeaseTime: time.Hour}},
		"unpublished cap": {{MaxUnpublished: 2 * segment.MinSegmentBytes}},
		"housekeeping":    {{Housekeeping: time.Second}, {Housekeeping: time.Hour}},
		"consumer hold":   {{ConsumerHoldMax: minConsumerHold}},
		"backoff":         {{Backoff: time.Second, MaxBackoff: time.Second}},
	}
	for name, configs := range tops {
		for _, c := range configs {
			if err := c.Validate(); err != nil {
				t.Errorf("%s at the end of its range: %v", name, err)
			}
		}
	}
	beyond := map[string][]Config{
		"segment-bytes":       {{WAL: wal.Config{SegmentBytes: segment.MinSegmentBytes - 1}}, {WAL: wal.Config{SegmentBytes: segment.MaxSegmentBytes + 1}}},
		"segment-age":         {{WAL: wal.Config{SegmentAge: time.Second - 1}}, {WAL: wal.Config{SegmentAge: 24*time.Hour + 1}}},
		"batch-window":        {{WAL: wal.Config{BatchWindow: -1}}, {WAL: wal.Config{BatchWindow: 10*time.Second + 1}}},
		"ack":                 {{Ack: "never"}},
		"shared window":       {{SharedWindow: -1}, {SharedWindow: 10*time.Second + 1}},
		"lease time":          {{LeaseTime: time.Second - 1}, {LeaseTime: time.Hour + 1}},
		"unpublished cap":     {{MaxUnpublished: 2*segment.MinSegmentBytes - 1}},
		"housekeeping":        {{Housekeeping: time.Second - 1}, {Housekeeping: time.Hour + 1}},
		"consumer hold":       {{ConsumerHoldMax: minConsumerHold - 1}, {ConsumerHoldMax: -1}},
		"streams per segment": {{MaxStreams: -1}},
		"publishing":          {{Publishing: -1}},
		"hydrating":           {{Hydrating: -1}},
		"quarantine cap":      {{QuarantineMax: -1}},
		"retention every":     {{RetentionEvery: -1}},
		"topology every":      {{TopologyEvery: -1}},
		"backoff":             {{Backoff: -1}, {Backoff: 2, MaxBackoff: 1}},
	}
	for name, configs := range beyond {
		for _, c := range configs {
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s beyond its range: %v", name, err)
			}
		}
	}

	w := newWorld(t, 1)
	_, err := w.tryOpen("a", func(o *Options) {
		o.Config = Config{
			WAL: wal.Config{SegmentBytes: 1, SegmentAge: 1, BatchWindow: -1}, Ack: "never", SharedWindow: -1, LeaseTime: 1,
			MaxUnpublished: 1, Housekeeping: 1, ConsumerHoldMax: 1, MaxStreams: -1, Publishing: -1, Hydrating: -1, QuarantineMax: -1,
			RetentionEvery: -1, TopologyEvery: -1, Backoff: -1,
		}
	})
	for name := range beyond {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("all at once: %q is not told of: %v", name, err)
		}
	}
	if _, err := os.Stat(w.options("a").Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if row := w.chain(0); row.Term != 0 {
		t.Errorf("the chain was taken: %+v", row)
	}
}
