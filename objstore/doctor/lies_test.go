package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

func configured(s objstore.Settings) func(*liar) {
	return func(l *liar) {
		if s.AbortsAfter == 0 {
			s.AbortsAfter = 7 * 24 * time.Hour
		}
		s.AbortsAfter = max(s.AbortsAfter, 0)
		l.settings = &s
	}
}

// takesRefusedPuts, and the next two: the store overwrites, and says that it did not.
func takesRefusedPuts(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if c.opts.IfNoneMatch && !l.absent(ctx, c.key) {
			c.opts.IfNoneMatch, c.answer.err = false, objstore.ErrExists
		}
		return nil
	}
}

func takesStalePuts(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if info, err := l.Driver.Head(ctx, c.key); err == nil && c.opts.IfMatch != "" && info.ETag != c.opts.IfMatch {
			c.opts.IfMatch, c.answer.err = "", objstore.ErrPrecondition
		}
		return nil
	}
}

func takesRefusedCompletes(l *liar) {
	l.onComplete = func(ctx context.Context, c call) error {
		if c.opts.IfNoneMatch && !l.absent(ctx, c.key) {
			c.opts.IfNoneMatch, c.answer.err = false, objstore.ErrExists
		}
		return nil
	}
}

func createsAbsent(l *liar) {
	l.onPut = func(ctx context.Context, c call) error {
		if _, err := l.Driver.Head(ctx, c.key); errors.Is(err, objstore.ErrNotFound) {
			c.opts.IfMatch = ""
		}
		return nil
	}
}

// together makes the writers of one key wait for each other between the look and the
// act, as a store does that does not lock: the first n that come act together.
type together struct {
	mu   sync.Mutex
	n    int
	came map[string]chan struct{}
	have map[string]int
}

func newTogether(n int) *together {
	return &together{n: n, came: map[string]chan struct{}{}, have: map[string]int{}}
}

func (g *together) wait(key string) {
	g.mu.Lock()
	if g.came[key] == nil {
		g.came[key] = make(chan struct{})
	}
	ch := g.came[key]
	if g.have[key]++; g.have[key] == g.n {
		close(ch)
	}
	g.mu.Unlock()
	<-ch
}

func (l *liar) absent(ctx context.Context, key string) bool {
	_, err := l.Driver.Head(ctx, key)
	return errors.Is(err, objstore.ErrNotFound)
}

func checksThenPuts(l *liar) {
	g := newTogether(16)
	l.onPut = func(ctx context.Context, c call) error {
		if strings.Contains(c.key, "create-once-race") {
			absent := l.absent(ctx, c.key)
			g.wait(c.key)
			c.opts.IfNoneMatch = !absent
		}
		return nil
	}
}

func checksThenCompletes(l *liar) {
	g := newTogether(16)
	race := func(ctx context.Context, c call) error {
		if strings.Contains(c.key, "complete-race") && c.opts.IfNoneMatch {
			absent := l.absent(ctx, c.key)
			g.wait(c.key)
			c.opts.IfNoneMatch = !absent
		}
		return nil
	}
	l.onPut, l.onComplete = race, race
}

// checksThenReplaces holds the first writer of the counter between the look at its condition
// and the write, until another has written.
func checksThenReplaces(l *liar) {
	var first sync.Map
	l.onPut = func(ctx context.Context, c call) error {
		if !strings.Contains(c.key, "replace-race") || c.opts.IfMatch == "" {
			return nil
		}
		if _, held := first.LoadOrStore(c.key, true); held {
			return nil
		}
		for ctx.Err() == nil {
			if info, err := l.Driver.Head(ctx, c.key); err == nil && info.ETag != c.opts.IfMatch {
				break
			}
			runtime.Gosched()
		}
		c.opts.IfMatch = ""
		return nil
	}
}

func unordered(l *liar) {
	l.page = func(_ string, p objstore.Page) objstore.Page {
		slices.Reverse(p.Objects)
		return p
	}
}

// losesPages drops the first key of every page but the first.
func losesPages(l *liar) {
	l.page = func(_ string, p objstore.Page) objstore.Page {
		if p.Next != "" && len(p.Objects) == 2 {
			p.Objects = p.Objects[:1]
		}
		return p
	}
}

// staleListing shows a key only from the third listing after it was first there.
func staleListing(l *liar) {
	var mu sync.Mutex
	shown := map[string]int{}
	l.page = func(_ string, p objstore.Page) objstore.Page {
		mu.Lock()
		defer mu.Unlock()
		p.Objects = slices.DeleteFunc(p.Objects, func(o objstore.Info) bool {
			shown[o.Key]++
			return shown[o.Key] < 3
		})
		return p
	}
}

func anySource(l *liar) {
	l.onCopy = func(c call) {
		if info, err := l.Driver.Head(context.Background(), c.src.Key); err == nil {
			c.src.ETag = info.ETag
		}
	}
}

// undead remembers the first bytes of the key that delete-visible works on.
func undead(l *liar) {
	inner := &cached{Driver: l.Driver, bytes: map[string][]byte{}}
	l.Driver = inner
}

type cached struct {
	objstore.Driver
	mu    sync.Mutex
	bytes map[string][]byte
	infos map[string]objstore.Info
}

func (c *cached) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if !strings.Contains(key, "delete-visible") {
		return c.Driver.Get(ctx, key, r, ifMatch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.infos == nil {
		c.infos = map[string]objstore.Info{}
	}
	if b, ok := c.bytes[key]; ok {
		return io.NopCloser(bytes.NewReader(b)), c.infos[key], nil
	}
	body, info, err := c.Driver.Get(ctx, key, r, ifMatch)
	if err != nil {
		return nil, info, err
	}
	b, err := io.ReadAll(body)
	c.bytes[key], c.infos[key] = b, info
	return io.NopCloser(bytes.NewReader(b)), info, errors.Join(err, body.Close())
}

// noAbort answers the aborts of two checks with success and does nothing.
func noAbort(l *liar) {
	l.onAbort = func() bool { return false }
}
