package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/strandline/strandline/segment"
)

const (
	// DefaultAttribute names the stream.
	DefaultAttribute = "service.name"
	// DefaultStream takes the records that name none.
	DefaultStream = "otlp-unknown"
	// appendTimeout ends a wait for a disk or a bucket that is away: the sender keeps the
	// records, and sends them again.
	appendTimeout = 30 * time.Second
	// complainEvery bounds the log while every request fails of the same cause.
	complainEvery = time.Second
)

// Deps of a Receiver. Zero fields take the defaults.
type Deps struct {
	// Append makes a batch durable, here or at the owner of its shard, and returns only
	// then. It is called concurrently, but not for one stream of one request. Errors that
	// are rows' own fault match ErrNever or the kinds of localtier and segment for it; any
	// other means that the same batch may be appended again.
	Append func(ctx context.Context, b Batch) error
	// Ready says whether appends are taken, for the health service; nil: they are.
	Ready func() error
	// Attribute names the stream, DefaultAttribute: of the resource, else the scope, else
	// the record. Records without it go to Stream.
	Attribute string
	Stream    string
	// KeepRepeats appends a request again that was taken already, instead of taking it for
	// the retry of a sender that never got its answer.
	KeepRepeats bool
	Logger      *slog.Logger     // nil: none
	Now         func() time.Time // nil: time.Now
}

// Receiver takes OTLP logs. It is an http.Handler; NewServer serves gRPC with it.
type Receiver struct {
	Deps
	largest   int           // record, as a row: MaxRecordBytes, less in tests
	message   time.Duration // messageTime, less in tests
	check     time.Duration // checkTime, likewise
	calls     chan struct{} // places of gRPC calls: maxCalls
	checks    chan struct{} // and of health checks, which a busy process answers, too: maxChecks
	memory    *semaphore.Weighted
	complains *rate.Limiter
	counters  counters
}

// New wires a Receiver.
func New(d Deps) (*Receiver, error) {
	if d.Append == nil {
		return nil, errors.New("otlp: no Append")
	}
	if d.Attribute == "" {
		d.Attribute = DefaultAttribute
	}
	if d.Stream == "" {
		d.Stream = DefaultStream
	}
	if err := segment.CheckStream(d.Stream); err != nil {
		return nil, fmt.Errorf("stream of records that name none: %w", err)
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Receiver{
		Deps: d, largest: MaxRecordBytes, message: messageTime, check: checkTime, memory: semaphore.NewWeighted(MaxMemory),
		calls: make(chan struct{}, maxCalls), checks: make(chan struct{}, maxChecks), complains: rate.NewLimiter(rate.Every(complainEvery), 1),
	}, nil
}

func (r *Receiver) share() *share { return &share{all: r.memory} }

// take is a whole request in protobuf: on return every record is durable, or counted as
// rejected, or there is an error and the sender has to keep all of them.
func (r *Receiver) take(ctx context.Context, body []byte, mine *share) (rejected, error) {
	in, err := decode(body, mine)
	if err != nil {
		r.end(ctx, 0, rejected{}, err)
		return rejected{}, err
	}
	n := in.Logs().LogRecordCount()
	no, err := r.takeRows(ctx, in, mine)
	r.end(ctx, n, no, err)
	return no, err
}

// end counts a request, and complains of it.
func (r *Receiver) end(ctx context.Context, n int, no rejected, err error) {
	r.counters.count(n, no, err)
	if err != nil {
		r.complain(ctx, err)
	}
}

func (r *Receiver) takeRows(ctx context.Context, in plogotlp.ExportRequest, mine *share) (rejected, error) {
	size := rowsBytes(in.Logs())
	if size > MaxRowsBytes {
		return rejected{}, tooLarge("the records, each with its resource and scope, are more than %d bytes; send fewer at once", MaxRowsBytes)
	}
	if err := mine.grow(int64(size)); err != nil {
		return rejected{}, err
	}
	s := &sorter{attribute: r.Attribute, dflt: r.Stream, largest: r.largest, now: r.Now(), of: map[string]*group{}}
	if err := s.sort(in.Logs()); err != nil {
		return rejected{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	// A crash from here on: what is durable stays, the sender was told nothing and sends
	// the request again.
	no, err := r.write(ctx, s.groups)
	if no.records > 0 {
		s.rejected.add(no.records, "%s", no.why)
	}
	return s.rejected, err
}

// decode reads a request that fits the memory.
func decode(body []byte, mine *share) (plogotlp.ExportRequest, error) {
	in := plogotlp.NewExportRequest()
	c, err := survey(body)
	if err != nil {
		return in, malformed("%v", err)
	}
	if c.records > MaxRecords {
		return in, tooLarge("%d records; a request holds at most %d, send them in several", c.records, MaxRecords)
	}
	if err := mine.grow(int64(len(body)) + elementBytes*int64(c.elements)); err != nil {
		return in, err
	}
	if err := in.UnmarshalProto(body); err != nil {
		return in, malformed("not OTLP logs: %v", err)
	}
	return in, nil
}

// decodeJSON brings a request in JSON into protobuf, on whose bounds everything else rests.
func decodeJSON(text []byte, mine *share) ([]byte, error) {
	objects, err := surveyJSON(text)
	if err != nil {
		return nil, malformed("%v", err)
	}
	if err := mine.grow(2*int64(len(text)) + elementBytes*int64(objects)); err != nil {
		return nil, err
	}
	in := plogotlp.NewExportRequest()
	if err := in.UnmarshalJSON(text); err != nil {
		return nil, malformed("not OTLP logs in JSON: %v", err)
	}
	body, err := in.MarshalProto()
	if err != nil {
		return nil, fmt.Errorf("write a request as protobuf: %w", err)
	}
	return body, nil
}

// complain tells an operator why senders are refused, now and then. What a sender did
// wrong it is told itself, and one that went away is no fault.
func (r *Receiver) complain(ctx context.Context, err error) {
	var no *refusal
	if errors.As(err, &no) || ctx.Err() != nil || !r.complains.Allow() {
		return
	}
	r.Logger.Warn("logs were not taken; their sender is told to send them again", "error", err)
}

// answer is the response of a request that was taken.
func answer(no rejected) plogotlp.ExportResponse {
	out := plogotlp.NewExportResponse()
	if no.records > 0 {
		out.PartialSuccess().SetRejectedLogRecords(int64(no.records))
		out.PartialSuccess().SetErrorMessage(no.why)
	}
	return out
}
