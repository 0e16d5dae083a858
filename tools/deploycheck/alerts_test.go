package deploycheck

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// case of an alert: series on which it fires after its wait, and series on which it must
// not. at is when it is looked at, beyond every rate's window.
type story struct{ fires, quiet []string }

const (
	shard    = `{instance="w",epoch="1",shard="0"`
	horizon  = 400 // samples: 200 minutes
	constant = "x400"
)

func one(name, labels, values string) string { return name + labels + "} " + values }

// stories has one of each alert; TestAlertsFire fails for an alert without.
var stories = map[string]story{
	"StrandlineDown":           {[]string{`up{job="strandline",instance="w"} 0` + constant}, []string{`up{job="strandline",instance="w"} 1` + constant}},
	"StrandlineNotReady":       {[]string{`strandline_ready{instance="w"} 0` + constant}, []string{`strandline_ready{instance="w"} 1` + constant}},
	"StrandlineLogPoisoned":    {[]string{one("strandline_wal_poisoned", shard, "1"+constant)}, []string{one("strandline_wal_poisoned", shard, "0"+constant)}},
	"StrandlineShardFenced":    {states("fenced"), states("serving")},
	"StrandlineShardHalted":    {states("halted"), states("fenced")},
	"StrandlineLeaseLost":      {states("lease-lost"), states("serving")},
	"StrandlineShardOwnerless": {[]string{`strandline_chains{state="ownerless"} 1` + constant, `strandline_chains{state="owned"} 3` + constant}, []string{`strandline_chains{state="ownerless"} 0` + constant, `strandline_chains{state="owned"} 4` + constant}},
	"StrandlineRowsOnOneDisk": {
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="absorbed"`, "0+30"+constant)},
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="absorbed"`, "10"+constant), one("strandline_cursor_lag_seconds", shard+`,cursor="rewritten"`, "900"+constant)},
	},
	"StrandlineAppendsRefused": {
		[]string{`strandline_http_request_seconds_count{instance="w",route="POST /v1/streams/{stream}/rows",code="503"} 0+3` + constant},
		[]string{`strandline_http_request_seconds_count{instance="w",route="POST /v1/streams/{stream}/rows",code="200"} 0+3` + constant, `strandline_http_request_seconds_count{instance="w",route="GET /readyz",code="503"} 0+3` + constant},
	},
	"StrandlineServerErrors": {
		[]string{`strandline_http_request_seconds_count{instance="w",route="GET /v1/status",code="500"} 0+1` + constant},
		[]string{`strandline_http_request_seconds_count{instance="w",route="GET /v1/status",code="404"} 0+1` + constant},
	},
	"StrandlineLostObject":     {[]string{`strandline_lost_objects{instance="a"} 1` + constant}, []string{`strandline_lost_objects{instance="a"} 0` + constant}},
	"StrandlineLocalDamage":    {[]string{one("strandline_wal_corrupt_frames_total", shard, "1"+constant)}, []string{one("strandline_wal_corrupt_frames_total", shard, "0"+constant)}},
	"StrandlineQuarantine":     {[]string{`strandline_quarantine_bytes{instance="w"} 10` + constant}, []string{`strandline_quarantine_bytes{instance="w"} 0` + constant}},
	"StrandlineDiskNearlyFull": {disk("900", "10000", "500"), disk("5000", "10000", "500")},
	"StrandlineSlowFsync":      {slow("strandline_wal_sync_seconds_bucket", `instance="w",shard="0"`, "0.25", "1"), slow("strandline_wal_sync_seconds_bucket", `instance="w",shard="0"`, "0.001", "0.0025")},
	"StrandlineConsumerLag": {
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="consumer"`, "0+30"+constant)},
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="consumer"`, "60"+constant)},
	},
	"StrandlineRetentionHeldBack": {retained("100000", "99999", "30000"), retained("100000", "50", "30000")},
	"StrandlineSettleBehind": {
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="rewritten"`, "0+60"+constant)},
		[]string{one("strandline_cursor_lag_seconds", shard+`,cursor="rewritten"`, "600"+constant)},
	},
	"StrandlineOldDebt":     {[]string{`strandline_duty_oldest_debt_seconds{instance="a",duty="gc"} 7200` + constant}, []string{`strandline_duty_oldest_debt_seconds{instance="a",duty="gc"} 10` + constant}},
	"StrandlineDutyFailing": {[]string{`strandline_duty_last_success_timestamp_seconds{instance="a",duty="gc"} 60` + constant}, []string{`strandline_duty_last_success_timestamp_seconds{instance="a",duty="gc"} 0+30` + constant, `strandline_duty_last_success_timestamp_seconds{instance="b",duty="gc"} 0` + constant}},
	"StrandlineNoAuditor":   {[]string{`up{job="strandline",instance="w"} 1` + constant}, []string{`strandline_auditors_live{instance="a"} 2` + constant}},
	"StrandlineDeletesHeld": {[]string{`strandline_deletes_held{instance="a",reason="rolled-back"} 1` + constant}, []string{`strandline_deletes_held{instance="a",reason="rolled-back"} 0` + constant, `strandline_deletes_held{instance="a",reason="clock"} 1` + constant}},
	"StrandlineClockSkew":   {[]string{`strandline_deletes_held{instance="a",reason="clock"} 1` + constant}, []string{`strandline_deletes_held{instance="a",reason="clock"} 0` + constant}},
	"StrandlineBudgetStarved": {
		[]string{`strandline_budget_waited_seconds_total{instance="a"} 0+60` + constant, one("strandline_cursor_lag_seconds", shard+`,cursor="rewritten"`, "4000"+constant)},
		[]string{`strandline_budget_waited_seconds_total{instance="a"} 0+60` + constant, one("strandline_cursor_lag_seconds", shard+`,cursor="rewritten"`, "400"+constant)},
	},
	"StrandlineCatalogAway": {
		[]string{`strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="unavailable"} 0+2` + constant, `strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="ok"} 40` + constant},
		[]string{`strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="unavailable"} 0+2` + constant, `strandline_catalog_verb_seconds_count{instance="w",verb="Plan",outcome="ok"} 0+1` + constant},
	},
	"StrandlineCatalogNewer": {
		[]string{`strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="newer"} 0+2` + constant},
		[]string{`strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="newer"} 7` + constant, `strandline_catalog_verb_seconds_count{instance="w",verb="Chain",outcome="unavailable"} 0+1` + constant},
	},
	"StrandlineCatalogSlow": {slow("strandline_catalog_verb_seconds_bucket", `instance="w",verb="Plan",outcome="ok"`, "2.5", "5"), slow("strandline_catalog_verb_seconds_bucket", `instance="w",verb="Plan",outcome="ok"`, "0.001", "0.005")},
	"StrandlineStoreAway": {
		[]string{`strandline_store_requests_total{instance="w",store="s",op="put",outcome="unavailable"} 0+2` + constant, `strandline_store_requests_total{instance="w",store="other",op="put",outcome="ok"} 0+1` + constant},
		[]string{`strandline_store_requests_total{instance="w",store="s",op="put",outcome="unavailable"} 0+2` + constant, `strandline_store_requests_total{instance="w",store="s",op="get",outcome="ok"} 0+1` + constant},
	},
	"StrandlineStoreThrottled": {[]string{`strandline_store_throttled_total{instance="w",store="s"} 0+90` + constant}, []string{`strandline_store_throttled_total{instance="w",store="s"} 0+1` + constant}},
	"StrandlineLeftBehind":     {[]string{`strandline_left_behind_shards{instance="w"} 2` + constant}, []string{`strandline_left_behind_shards{instance="w"} 0` + constant}},
	"StrandlineCopiesOwed":     {[]string{one("strandline_shard_owed_copies", shard, "3"+constant)}, []string{one("strandline_shard_owed_copies", shard, "0"+constant)}},
	"StrandlineCacheDamage":    {[]string{`strandline_object_cache_damage_total{instance="c",kind="poisoned"} 0+1` + constant}, []string{`strandline_object_cache_damage_total{instance="c",kind="poisoned"} 7` + constant}},
	"StrandlineTelemetryNotPushed": {
		[]string{`strandline_telemetry_exports_total{instance="w",signal="metrics",outcome="failed"} 0+1` + constant, `strandline_telemetry_exports_total{instance="w",signal="metrics",outcome="ok"} 5` + constant},
		[]string{`strandline_telemetry_exports_total{instance="w",signal="metrics",outcome="failed"} 0+1` + constant, `strandline_telemetry_exports_total{instance="w",signal="metrics",outcome="ok"} 0+1` + constant},
	},
}

// states is a shard in one of them.
func states(is string) (lines []string) {
	for _, s := range []string{"serving", "lease-lost", "fenced", "halted", "closed"} {
		v := "0"
		if s == is {
			v = "1"
		}
		lines = append(lines, one("strandline_shard_state", shard+`,state="`+s+`"`, v+constant))
	}
	return lines
}

func disk(free, size, least string) []string {
	return []string{
		`strandline_disk_free_bytes{instance="w"} ` + free + constant, `strandline_disk_size_bytes{instance="w"} ` + size + constant,
		`strandline_disk_min_free_bytes{instance="w"} ` + least + constant,
	}
}

// slow is a histogram whose values all lie between two bounds.
func slow(name, labels, below, above string) []string {
	return []string{
		name + "{" + labels + `,le="` + below + `"} 0` + constant,
		name + "{" + labels + `,le="` + above + `"} 0+9` + constant,
		name + "{" + labels + `,le="+Inf"} 0+9` + constant,
	}
}

func retained(rows, behind, seconds string) []string {
	return []string{
		one("strandline_chain_retained_rows", shard, rows+constant), one("strandline_cursor_lag_rows", shard+`,cursor="consumer"`, behind+constant),
		one("strandline_cursor_lag_seconds", shard+`,cursor="consumer"`, seconds+constant),
	}
}

// TestAlertsFire evaluates each rule as Prometheus does: it fires if its expression held at
// every evaluation of its wait.
func TestAlertsFire(t *testing.T) {
	e := engine(t)
	at := moment(horizon * step * 9 / 10)
	told := map[string]bool{}
	for _, a := range alerts(t) {
		told[a.name] = true
		s, ok := stories[a.name]
		if !ok {
			t.Errorf("%s has no story", a.name)
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			for fires, lines := range map[bool][]string{true: s.fires, false: s.quiet} {
				storage := promqltest.LoadedStorage(t, load(lines...))
				steps, hits, last := window(t, e, storage, a.expr, at.Add(-a.wait), at)
				if got := hits == steps; got != fires {
					t.Errorf("fires: %t, want %t: %d of %d evaluations, last %v", got, fires, hits, steps, last)
				}
				if !fires && hits > 0 {
					t.Errorf("pending on what is quiet: %v", last)
				}
			}
		})
	}
	for name := range stories {
		if !told[name] {
			t.Errorf("%s is a story of no alert", name)
		}
	}
	if at.Before(moment(2 * time.Hour)) {
		t.Error("looked at before the windows are full")
	}
}
