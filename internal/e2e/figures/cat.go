//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/e2e"
	"github.com/strandline/strandline/objstore/miniostore"
)

const (
	fillBytes = 4 << 20 // of one append
	lookEvery = 2 * time.Millisecond
)

// kind is one of the streams that are read. Rows that do not compress are stored as they
// are, and reading them is the bytes' way; of printable ones the most is decompressing.
type kind struct {
	stream, rows string
	random       bool
}

var kinds = []kind{{"random", "rows that do not compress", true}, {"printable", "printable rows", false}}

// fill appends the stream.
func (q kind) fill(ctx context.Context, url string, o *options, r *report) error {
	c, done, err := to(url, 1)
	if err != nil {
		return err
	}
	defer done()
	rng := rand.New(rand.NewPCG(3, 3))
	n := 0
	for total := 0; total < o.streamMiB<<20; {
		batch := rows(rng, fillBytes/o.rowBytes, o.rowBytes)
		if q.random {
			for i := range batch {
				for k := range batch[i].Payload {
					batch[i].Payload[k] = byte(rng.Uint32())
				}
			}
		}
		if _, err := c.Append(ctx, q.stream, batch, client.AppendOptions{}); err != nil {
			return err
		}
		n += len(batch)
		total += len(batch) * o.rowBytes
	}
	r.note("Stream %s: %d rows of %d B, %d MiB.", q.stream, n, o.rowBytes, n*o.rowBytes>>20)
	return c.Flush(ctx)
}

// coldReads reads the settled stream by `cat` and by the bare client, in turns.
func (q kind) coldReads(ctx context.Context, site *e2e.Site, o *options, r *report) error {
	spans, err := rangesOf(ctx, site, q.stream)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, s := range spans {
		total += s.bytes()
	}
	window := coldload.Config{}.WithDefaults().Window
	b, err := miniostore.OpenBare(ctx, miniostore.Config{
		Endpoint: site.Minio.Endpoint, Bucket: e2e.BucketName, PathStyle: true, AccessKey: site.Minio.AccessKey, SecretKey: site.Minio.SecretKey,
	}, false)
	if err != nil {
		return err
	}
	defer b.Close()
	var cats, bares, ratios, starts, cpus []float64
	peak := int64(0)
	for range o.rounds {
		bare, err := readBare(ctx, b, spans, window)
		if err != nil {
			return err
		}
		all, err := runCat(ctx, site, "cat", q.stream)
		if err != nil {
			return err
		}
		one, err := runCat(ctx, site, "cat", q.stream, "--to", "1")
		if err != nil {
			return err
		}
		peak = max(peak, all.peak)
		cats, bares, ratios = append(cats, all.wall), append(bares, bare), append(ratios, bare/all.wall)
		starts, cpus = append(starts, one.wall), append(cpus, all.cpu)
	}
	r.least("cold cat of a settled stream beside the bare client, same ranges, "+q.rows, "ratio", leastCatRatio, median(ratios))
	r.most("its peak memory (VmHWM), "+q.rows, "MiB", mostCatMiB, float64(peak)/(1<<20))
	r.note("Cold reads of %s: %d ranges, %.0f MiB stored, %d in flight; medians of %d: cat %.2f s, of which its process's start %.2f s (a cat of one row), %.2f CPU seconds of its own; bare client %.2f s (%.0f MiB/s).",
		q.stream, len(spans), float64(total)/(1<<20), window, o.rounds, median(cats), median(starts), median(cpus), median(bares), float64(total)/(1<<20)/median(bares))
	return nil
}

// rangesOf are what a `cat` of the stream reads, in its order.
func rangesOf(ctx context.Context, site *e2e.Site, stream string) ([]span, error) {
	rec, err := record(site.Minio.URL)
	if err != nil {
		return nil, err
	}
	out, err := site.Command(ctx, rec.at, "cat", stream, "--to", "1").CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cat: %w: %.500s", err, out), rec.close())
	}
	rec.spans = nil // what every start reads is not the stream's
	cmd := site.Command(ctx, rec.at, "cat", stream)
	err = errors.Join(cmd.Run(), rec.close())
	if err != nil {
		return nil, err
	}
	if len(rec.spans) == 0 || slices.ContainsFunc(rec.spans, func(s span) bool { return strings.Contains(s.key, "/seg/") }) {
		return nil, fmt.Errorf("the stream is not settled: %d ranges, %v", len(rec.spans), rec.spans)
	}
	return rec.spans, nil
}

// readBare reads the ranges with minio-go and nothing around it, into memory that is used
// again.
func readBare(ctx context.Context, b *miniostore.Bare, spans []span, window int) (seconds float64, err error) {
	begun := time.Now()
	next := make(chan span, len(spans))
	for _, s := range spans {
		next <- s
	}
	close(next)
	g, ctx := errgroup.WithContext(ctx)
	for range window {
		g.Go(func() error {
			var buf []byte
			for s := range next {
				buf = slices.Grow(buf[:0], int(s.bytes()))[:s.bytes()]
				if err := readSpan(ctx, b, s, buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return time.Since(begun).Seconds(), err
}

func readSpan(ctx context.Context, b *miniostore.Bare, s span, into []byte) error {
	var o minio.GetObjectOptions
	o.Set("Range", fmt.Sprintf("bytes=%d-%d", s.from, s.to))
	body, _, _, err := b.Core.GetObject(ctx, b.Bucket, s.key, o)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(body, into)
	return errors.Join(err, body.Close())
}

// used is what one process took.
type used struct {
	wall, cpu float64 // seconds
	peak      int64   // resident
}

// runCat runs a command whose output goes nowhere, and watches its memory.
func runCat(ctx context.Context, site *e2e.Site, args ...string) (u used, err error) {
	cmd := site.Command(ctx, "", args...)
	var said strings.Builder
	cmd.Stderr = &said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return u, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return u, fmt.Errorf("%v: %w: %.500s", args, err, said.String())
			}
			u.wall = time.Since(begun).Seconds()
			u.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			return u, nil
		case <-tick.C:
			u.peak = max(u.peak, highWater(cmd.Process.Pid))
		}
	}
}

// highWater is the most that a process had resident so far; 0: it is gone, or the system
// does not tell.
func highWater(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // only read
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64) // 0 if it is another form
			return kib << 10
		}
	}
	return 0
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}
