package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
)

type contextT = context.Context

func TestValues(t *testing.T) {
	now := time.Now()
	p := start(t, Config{Command: Up, Now: func() time.Time { return now }})
	p.Watch(everything(t, now))
	passed(t, p)
	for _, err := range []error{catalog.ErrConflict, fmt.Errorf("around: %w", catalog.ErrUnavailable), errors.New("of no kind")} {
		if got := verb(t, p, err); !errors.Is(got, err) {
			t.Errorf("%v came back as %v", err, got)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := outcomeOf(gone, catalog.ErrUnavailable); got != "cancelled" {
		t.Errorf("the caller went away: %s", got)
	}
	got := scrape(t, p)
	chain := []string{"epoch=1", "shard=2"}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"strandline_wal_appends_total", chain, 11},
		{"strandline_wal_sync_seconds", chain, 3},
		{"strandline_wal_checkpoint_segment", chain, 6},
		{"strandline_shard_state", append([]string{"state=lease-lost"}, chain...), 1},
		{"strandline_shard_state", append([]string{"state=serving"}, chain...), 0},
		{"strandline_shard_lease_seconds", chain, -1},
		{"strandline_cursor_lag_rows", append([]string{"cursor=absorbed"}, chain...), 40},
		{"strandline_cursor_lag_rows", append([]string{"cursor=consumer"}, chain...), 9},
		{"strandline_cursor_lag_rows", []string{"cursor=consumer", "shard=3"}, 20},
		{"strandline_cursor_lag_seconds", append([]string{"cursor=absorbed"}, chain...), 90},
		{"strandline_cursor_lag_seconds", append([]string{"cursor=consumer"}, chain...), 60},
		{"strandline_cursor_lag_seconds", append([]string{"cursor=rewritten"}, chain...), 120},
		{"strandline_cursor_lag_seconds", append([]string{"cursor=trimmed"}, chain...), 30},
		{"strandline_cursor_lag_slots", append([]string{"cursor=trimmed"}, chain...), 5},
		{"strandline_chain_retained_rows", chain, 40},
		{"strandline_transit_bytes", chain, 999},
		{"strandline_chains", []string{"state=ownerless"}, 1},
		{"strandline_chains", []string{"state=closed"}, 1},
		{"strandline_otlp_requests_total", []string{"outcome=later"}, 2},
		{"strandline_quarantine_bytes", nil, 77},
		{"strandline_duty_runs_total", []string{"duty=settle", "outcome=failed"}, 1},
		{"strandline_duty_markers", []string{"duty=settle", "state=waiting"}, 3},
		{"strandline_duty_seconds", []string{"duty=settle", "outcome=worked"}, 1},
		{"strandline_lost_objects", nil, 2},
		{"strandline_deletes_held", []string{"reason=clock"}, 1},
		{"strandline_deletes_held", []string{"reason=unread"}, 0},
		{"strandline_store_requests_total", []string{"op=put", "outcome=ok"}, 1},
		{"strandline_store_requests_total", []string{"op=head", "outcome=not-found"}, 1},
		{"strandline_store_requests_total", []string{"op=head", "outcome=ok"}, 0},
		{"strandline_store_request_seconds", []string{"op=put"}, 1},
		{"strandline_http_request_seconds", []string{"route=GET /v1/streams/{stream}/rows", "code=418"}, 1},
		{"strandline_http_requests_in_flight", nil, 0},
		{"strandline_catalog_verb_seconds", []string{"verb=Plan", "outcome=conflict"}, 1},
		{"strandline_catalog_verb_seconds", []string{"verb=Plan", "outcome=unavailable"}, 1},
		{"strandline_catalog_verb_seconds", []string{"verb=Plan", "outcome=other"}, 1},
		{"strandline_object_cache_unkept_total", []string{"reason=other"}, 3},
	} {
		if v := value(t, got, c.name, c.labels...); v != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, v, c.want)
		}
	}
	if len(got["strandline_transit_bytes"].Metric) != 2 {
		t.Error("the chain that is through with everything is served")
	}
}

// TestIdlePassesAreNotCounted: they come every second.
func TestIdlePassesAreNotCounted(t *testing.T) {
	p := start(t, Config{})
	_, err := p.Duty(t.Context(), "gc", func(contextT) (int, error) { return 0, nil })
	if err != nil || scrape(t, p)["strandline_duty_seconds"] != nil {
		t.Errorf("%v: an idle pass was counted", err)
	}
	failed := errors.New("no")
	if _, err := p.Duty(t.Context(), "gc", func(contextT) (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	value(t, scrape(t, p), "strandline_duty_seconds", "duty=gc", "outcome=failed")
}

// TestScrapesAskTheCatalogOnce: many scrapes within fifteen seconds cost one verb, and one
// that hangs holds up none of them.
func TestScrapesAskTheCatalogOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		hangs := make(chan struct{})
		ask := func(ctx context.Context) ([]catalog.ChainRow, error) {
			if asked.Add(1) == 2 {
				select {
				case <-hangs:
				case <-ctx.Done():
				}
				return nil, catalog.ErrUnavailable
			}
			return make([]catalog.ChainRow, asked.Load()), nil
		}
		c := &chainsLook{now: time.Now}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if rows, read := c.look(t.Context(), ask); len(rows) != 1 || read.IsZero() {
					t.Errorf("%d rows of %v", len(rows), read)
				}
			})
		}
		all.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
		time.Sleep(chainsEvery)
		began := time.Now()
		if rows, _ := c.look(t.Context(), ask); len(rows) != 1 || time.Since(began) > chainsPatience {
			t.Errorf("%d rows after %v: a catalog that hangs has the last ones", len(rows), time.Since(began))
		}
		close(hangs)
		synctest.Wait()
		time.Sleep(chainsEvery)
		if rows, _ := c.look(t.Context(), ask); len(rows) != 3 || asked.Load() != 3 {
			t.Errorf("%d rows, asked %d times", len(rows), asked.Load())
		}
		c.close()
		time.Sleep(chainsEvery)
		if c.look(t.Context(), ask); asked.Load() != 3 {
			t.Error("asked after its close")
		}
	})
}

// TestWrapKeepsFollowing: what flushes through the wrapper reaches the client, and codes
// before the answer are not its code.
func TestWrapKeepsFollowing(t *testing.T) {
	p := start(t, Config{})
	h := p.Wrap("GET /x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no Flusher")
		}
	}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/x", nil))
	if !rec.Flushed {
		t.Error("not flushed")
	}
	value(t, scrape(t, p), "strandline_http_request_seconds", "route=GET /x", "code=202")
	if n := value(t, scrape(t, p), "strandline_http_requests_in_flight", "route=GET /x"); n != 0 {
		t.Errorf("%v under way", n)
	}
}
