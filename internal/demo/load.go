package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"
)

const (
	loaders    = 8
	batchBytes = 1 << 20
)

// load appends every package, several at once, each in order.
func load(ctx context.Context, base string, pkgs []*pkg) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loaders}}
	defer client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loaders)
	for _, p := range pkgs {
		g.Go(func() error {
			if err := loadPackage(ctx, client, base, p); err != nil {
				return fmt.Errorf("load %s: %w", p.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func loadPackage(ctx context.Context, client *http.Client, base string, p *pkg) error {
	target := base + "/v1/streams/" + url.PathEscape(p.name) + "/rows"
	var buf bytes.Buffer
	pending := 0
	flush := func() error {
		if pending == 0 {
			return nil
		}
		first, err := post(ctx, client, target, buf.Bytes(), pending)
		if err != nil {
			return err
		}
		p.batches = append(p.batches, batch{index: p.rows, first: first})
		p.rows += pending
		pending = 0
		buf.Reset()
		return nil
	}
	for line, err := range p.lines() {
		if err != nil {
			return err
		}
		buf.Write(line)
		buf.WriteByte('\n')
		p.bytes += int64(len(line))
		pending++
		if buf.Len() >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// post appends one batch and returns its first seq.
func post(ctx context.Context, client *http.Client, target string, body []byte, rows int) (uint64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var got struct {
		First, Last uint64
		Rows        int
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", resp.Status, answer)
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return 0, err
	}
	if got.Rows != rows || got.Last-got.First+1 != uint64(rows) {
		return 0, fmt.Errorf("sent %d rows, the answer is %s", rows, answer)
	}
	return got.First, nil
}
