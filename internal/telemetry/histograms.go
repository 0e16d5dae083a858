package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
)

// countedProducer gives readers the histograms that rooms counted in plain atomic buckets:
// a meter's own would be a call for each fsync and each request.
type countedProducer struct{ p *Provider }

// Produce implements sdkmetric.Producer.
func (c countedProducer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	src, now := c.p.sources.Load(), c.p.cfg.Now()
	var out []metricdata.Metrics
	var syncs, requests []metricdata.HistogramDataPoint[float64]
	for _, st := range src.shards() {
		epoch, shard := chainLabel(st.Chain)
		syncs = append(syncs, point(wal.SyncBounds(), st.Log.SyncBuckets, st.Log.SyncTime.Seconds(),
			attribute.String("epoch", epoch), attribute.String("shard", shard)))
	}
	accounts := src.accounts()
	for _, store := range sortedKeys(accounts) {
		for op, a := range accounts[store].Ops {
			requests = append(requests, point(objstore.TimeBounds(), a.Buckets, a.Seconds, attribute.String("store", store), attribute.String("op", string(op))))
		}
	}
	for _, h := range []struct {
		name   string
		points []metricdata.HistogramDataPoint[float64]
	}{{"strandline_wal_sync_seconds", syncs}, {"strandline_store_request_seconds", requests}} {
		for i := range h.points {
			h.points[i].StartTime, h.points[i].Time = c.p.began, now
		}
		if d, ok := Lookup(h.name); ok && len(h.points) > 0 {
			out = append(out, metricdata.Metrics{
				Name: d.Name, Description: d.Help, Unit: string(d.Unit),
				Data: metricdata.Histogram[float64]{DataPoints: h.points, Temporality: metricdata.CumulativeTemporality},
			})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope}, Metrics: out}}, nil
}

// point is one series of a histogram. Its count is the sum of its buckets: counters that
// are read one after the other would not always agree.
func point(bounds []time.Duration, buckets []int64, sum float64, labels ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
	h := metricdata.HistogramDataPoint[float64]{Attributes: attribute.NewSet(labels...), Sum: sum}
	for _, b := range bounds {
		h.Bounds = append(h.Bounds, b.Seconds())
	}
	for _, n := range buckets {
		h.BucketCounts = append(h.BucketCounts, uint64(max(n, 0)))
		h.Count += uint64(max(n, 0))
	}
	return h
}
