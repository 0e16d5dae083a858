//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

const (
	smallRow   = 200 // bytes
	batchRows  = 500
	sharedRate = 1000 // rows a second
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// rows are n rows of a size, of printable bytes.
func rows(rng *rand.Rand, n, size int) []segment.Row {
	out := make([]segment.Row, n)
	for i := range out {
		p := make([]byte, size)
		for k := range p {
			p[k] = alphabet[rng.IntN(len(alphabet))]
		}
		out[i].Payload = p
	}
	return out
}

// to is a client with so many connections. Bodies go as they are: over loopback, compressing
// them costs the cores that the writer needs.
func to(url string, connections int) (*client.Client, func(), error) {
	t := &http.Transport{MaxIdleConnsPerHost: connections}
	c, err := client.New(client.Config{URL: url, HTTP: &http.Client{Transport: t}, Encoding: client.Identity})
	return c, t.CloseIdleConnections, err
}

// appendRows appends as fast as it goes, each connection a batch at a time.
func appendRows(ctx context.Context, url string, o *options, r *report) error {
	c, done, err := to(url, o.connection)
	if err != nil {
		return err
	}
	defer done()
	var taken atomic.Int64
	until := time.Now().Add(o.appends)
	begun := time.Now()
	g, within := errgroup.WithContext(ctx)
	for i := range o.connection {
		g.Go(func() error {
			batch := rows(rand.New(rand.NewPCG(1, uint64(i))), batchRows, smallRow)
			for time.Now().Before(until) {
				if _, err := c.Append(within, fmt.Sprint("fast-", i), batch, client.AppendOptions{Ack: client.AckLocal}); err != nil {
					return err
				}
				taken.Add(batchRows)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	rate := float64(taken.Load()) / time.Since(begun).Seconds()
	r.least(fmt.Sprintf("rows of %d B in batches of %d, ack=local", smallRow, batchRows), "rows/s", leastRows, rate)
	begun = time.Now()
	// A segment is published once all before it are: what follows must not wait for these.
	if err := c.Flush(ctx); err != nil {
		return err
	}
	r.note("Appends: %d connections for %v, %d rows; the client package, bodies not compressed, each with an Idempotency-Key. What was not published by then took %v more.",
		o.connection, o.appends, taken.Load(), time.Since(begun).Round(10*time.Millisecond))
	return nil
}

// sharedAppends appends at a fixed rate. A time counts from when its append was due, so
// that one that is late because others are slow counts as slow.
func sharedAppends(ctx context.Context, url string, o *options, r *report) error {
	c, done, err := to(url, 1024)
	if err != nil {
		return err
	}
	defer done()
	var mu sync.Mutex
	var took []time.Duration
	every := time.Second * time.Duration(o.batch) / sharedRate
	batch := rows(rand.New(rand.NewPCG(2, 2)), o.batch, smallRow)
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for n := 0; time.Duration(n)*every < o.shared; n++ {
		due := begun.Add(time.Duration(n) * every)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return g.Wait()
		}
		g.Go(func() error {
			_, err := c.Append(ctx, fmt.Sprint("shared-", n%32), batch, client.AppendOptions{Ack: client.AckShared})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(due))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))]) / float64(time.Millisecond) }
	most := float64(sharedWindow/time.Millisecond) + windowSlack
	r.most(fmt.Sprintf("p99 of ack=shared at %d rows/s, window %v", sharedRate, sharedWindow), "ms", most, at(0.99))
	r.note("Shared acknowledgements: %d appends of %d rows to 32 streams in 4 shards, open loop; p50 %.0f ms, p90 %.0f, p99.9 %.0f, most %.0f.",
		len(took), o.batch, at(0.5), at(0.9), at(0.999), at(1))
	return nil
}
