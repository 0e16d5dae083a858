package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/strandline/strandline/segment"
)

// The defaults of a Batcher.
const (
	DefaultBatchRows  = 5000
	DefaultBatchBytes = 1 << 20
	DefaultBatchPosts = 16
)

// BatcherConfig of a Batcher. The zero value of a field means its default.
type BatcherConfig struct {
	Rows  int // of one request. Default 5,000
	Bytes int // of payloads and transaction ids of one request, one row apart. Default 1 MiB
	Posts int // requests at once, each of another stream. Default 16
	// Append is what each request is sent with; its Key, Producer and Sequence are not for many.
	Append AppendOptions
}

// Batcher appends single rows of many goroutines in few requests. While a stream's request is
// under way, what comes for it gathers and is the next: a lone row waits for nothing, and many
// share a request and an fsync. Rows of one goroutine keep their order. What waits is what its
// callers hold, one row each; what is under way is Posts requests.
type Batcher struct {
	client *Client
	cfg    BatcherConfig
	posts  chan struct{} // room for requests

	mu      sync.Mutex
	closed  bool
	waiting map[string]*stack // of streams with a sender
	// idle are those of streams without one: a stream stays one producer.
	idle    map[string]*Appender
	senders sync.WaitGroup
}

// maxIdle bounds what is kept; without it a stream gets a new producer.
const maxIdle = 10_000

// stack is what waits for a stream's sender.
type stack struct {
	rows []*waiting
	to   *Appender
}

// waiting is a row with its caller.
type waiting struct {
	row  segment.Row
	done chan struct{}
	at   segment.Token
	err  error
	// left: its caller gave up before it was sent; guarded by Batcher.mu.
	left bool
	// batch is the request it is in, guarded by Batcher.mu.
	batch *batchState
}

// batchState is a request: once no caller waits for it, it is ended.
type batchState struct {
	callers int
	cancel  context.CancelFunc
}

// NewBatcher makes one; Close it to wait for what is under way.
func (c *Client) NewBatcher(cfg BatcherConfig) (*Batcher, error) {
	if cfg.Append.Key != "" || cfg.Append.Producer != "" || cfg.Rows < 0 || cfg.Bytes < 0 || cfg.Posts < 0 {
		return nil, fmt.Errorf("%w: a Batcher has no Key or Producer, and no negative bounds", ErrConfig)
	}
	if cfg.Rows == 0 {
		cfg.Rows = DefaultBatchRows
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultBatchBytes
	}
	if cfg.Posts == 0 {
		cfg.Posts = DefaultBatchPosts
	}
	return &Batcher{client: c, cfg: cfg, posts: make(chan struct{}, cfg.Posts), waiting: map[string]*stack{}, idle: map[string]*Appender{}}, nil
}

// Append returns the row's position once it is acknowledged, as Client.Append does with its
// errors. The end of ctx: a row that was not sent is not appended, of another it is unknown.
func (b *Batcher) Append(ctx context.Context, stream string, row segment.Row) (segment.Token, error) {
	w := &waiting{row: row, done: make(chan struct{})}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return segment.Token{}, ErrClosed
	}
	s := b.waiting[stream]
	if s == nil {
		if s = (&stack{to: b.idle[stream]}); s.to == nil {
			s.to = b.client.NewAppender(stream, b.cfg.Append)
		}
		b.waiting[stream] = s
		b.senders.Go(func() { b.send(stream, s) })
	}
	s.rows = append(s.rows, w)
	b.mu.Unlock()
	select {
	case <-w.done:
		return w.at, w.err
	case <-ctx.Done():
		return segment.Token{}, b.leave(ctx, w)
	}
}

// leave takes a row's caller away.
func (b *Batcher) leave(ctx context.Context, w *waiting) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.left = true
	if w.batch == nil {
		return fmt.Errorf("append: not sent: %w", context.Cause(ctx))
	}
	if w.batch.callers--; w.batch.callers == 0 {
		w.batch.cancel()
	}
	return fmt.Errorf("append: %w: %w", ErrUnknown, context.Cause(ctx))
}

// send posts a stream's rows, batch after batch, until none wait.
func (b *Batcher) send(stream string, s *stack) {
	for {
		b.posts <- struct{}{}
		ctx, cancel := context.WithCancel(context.Background())
		batch := b.next(stream, s, cancel)
		if batch != nil {
			post(ctx, s.to, batch)
		}
		cancel()
		<-b.posts
		if batch == nil {
			return
		}
	}
}

// next takes the next request's rows; nil: none wait, and the stream has no sender any more.
func (b *Batcher) next(stream string, s *stack, cancel context.CancelFunc) []*waiting {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := &batchState{cancel: cancel}
	var batch []*waiting
	size, taken := 0, 0
	for _, w := range s.rows {
		n := len(w.row.Payload) + len(w.row.Txn)
		if len(batch) > 0 && (len(batch) == b.cfg.Rows || size+n > b.cfg.Bytes) {
			break
		}
		taken++
		if w.left {
			continue
		}
		w.batch = state
		size += n
		batch = append(batch, w)
	}
	state.callers = len(batch)
	s.rows = s.rows[taken:]
	if len(batch) == 0 {
		delete(b.waiting, stream)
		if len(b.idle) >= maxIdle {
			clear(b.idle)
		}
		b.idle[stream] = s.to
	}
	return batch
}

// post sends one request and tells each caller.
func post(ctx context.Context, to *Appender, batch []*waiting) {
	rows := make([]segment.Row, len(batch))
	for i, w := range batch {
		rows[i] = w.row
	}
	got, err := to.Append(ctx, rows)
	for i, w := range batch {
		w.at, w.err = segment.Token{Epoch: got.Epoch, Term: got.Term, Seq: got.First + segment.Seq(i)}, err
		close(w.done)
	}
}

// Close refuses new rows and waits for those under way: their callers have their answers when it
// returns. Callers end their own waits by their contexts.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.senders.Wait()
}
