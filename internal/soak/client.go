//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/strandline/strandline/segment"
)

// callTimeout gives up on a process that is stopped.
const callTimeout = 4 * time.Second

// problem is a refusal.
type problem struct {
	Status int     `json:"status"`
	Code   string  `json:"code"`
	Title  string  `json:"title"`
	Detail string  `json:"detail"`
	Owner  string  `json:"owner"`
	Expect *uint64 `json:"expect"`
}

func (p *problem) Error() string {
	return fmt.Sprintf("%d %s: %s: %.300s", p.Status, p.Code, p.Title, p.Detail)
}

// wroteNothing says whether a refusal came before anything was written.
func (p *problem) wroteNothing() bool {
	switch p.Code {
	case "not-owner", "epoch-over", "backpressure", "disk-full", "busy", "sequence":
		return true
	}
	return false
}

// passing says whether a refusal is one that faults like ours explain.
func (p *problem) passing() bool {
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusMisdirectedRequest, http.StatusInsufficientStorage:
		return true
	}
	return p.Code == "sequence" || p.Code == "forked"
}

// neverSent says that a request did not reach anybody.
func neverSent(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// call makes a request and decodes its answer; a refusal is a *problem.
func call(ctx context.Context, c *http.Client, method, target, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := fetch(ctx, c, method, target, body)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func fetch(ctx context.Context, c *http.Client, method, target, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return text, nil
	}
	p := &problem{}
	if json.Unmarshal(text, p) != nil || p.Code == "" {
		p.Code, p.Title = "no-problem", string(text)
	}
	p.Status = resp.StatusCode
	return nil, p
}

func streamPath(stream string) string { return "/v1/streams/" + url.PathEscape(stream) + "/rows" }

// ask calls whoever serves a shard, once; what it says of the owner is kept.
func (f *fleet) ask(ctx context.Context, who caller, method, path, body string, into any) error {
	base := f.route(who.shard)
	if base == "" {
		return errNobody
	}
	err := call(ctx, who.http, method, base+path, body, into)
	f.learn(who.shard, base, err)
	return err
}

// caller is an actor's client and the shard that it talks to.
type caller struct {
	http  *http.Client
	shard segment.Shard
}

var errNobody = errors.New("no writer runs")

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}
}
