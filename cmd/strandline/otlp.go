package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"

	callers "github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/internal/otlp"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// otlpFlags are the knobs of logs that come by OTLP: POST /v1/logs, and gRPC.
type otlpFlags struct {
	grpc, attribute, stream string
	ack                     string
	keepRepeats             bool
	caller                  callerFlags
}

func (o *otlpFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.grpc, "otlp-grpc", "", "address to take OTLP logs on over gRPC, like 127.0.0.1:4317; empty: over HTTP only, at POST /v1/logs")
	f.StringVar(&o.attribute, "otlp-stream-attribute", otlp.DefaultAttribute, "attribute that names the stream of a log record: the resource's, else the scope's, else the record's")
	f.StringVar(&o.stream, "otlp-default-stream", otlp.DefaultStream, "stream of the records that have no such attribute")
	f.StringVar(&o.ack, "otlp-ack", "", "when OTLP requests are acknowledged: local or shared (default: as --ack)")
	f.BoolVar(&o.keepRepeats, "otlp-keep-repeats", false, "append an OTLP request again that was taken already, instead of taking it for a retry")
	o.caller.register(f)
}

// validate joins every fault.
func (o *otlpFlags) validate(listen *listenFlags) error {
	var errs []error
	if o.grpc != "" {
		_, _, err := net.SplitHostPort(o.grpc)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--otlp-grpc %q: give HOST:PORT", o.grpc))
		case !listen.remote:
			errs = append(errs, listen.access.exposed("--otlp-grpc", o.grpc))
		}
	}
	if o.attribute == "" {
		errs = append(errs, errors.New("--otlp-stream-attribute: give the attribute's name"))
	}
	if err := segment.CheckStream(o.stream); err != nil {
		errs = append(errs, fmt.Errorf("--otlp-default-stream: %w", err))
	}
	if o.ack != "" && o.ack != string(localtier.AckLocal) && o.ack != string(localtier.AckShared) {
		errs = append(errs, fmt.Errorf("--otlp-ack %q: give local or shared", o.ack))
	}
	return errors.Join(append(errs, o.caller.validate())...)
}

// logs is what takes OTLP logs in this process: its own shards' here, others' at their owners.
type logs struct {
	*otlp.Receiver

	service *service
	ack     localtier.Ack
	others  forwarder
}

// openLogs wires the receiver; nothing is served by it yet.
func (s *service) openLogs() (*logs, error) {
	o := &s.flags.otlp
	caller, err := o.caller.open()
	if err != nil {
		return nil, err
	}
	l := &logs{service: s, ack: localtier.Ack(o.ack), others: forwarder{caller: caller, ack: callers.Ack(o.ack), owners: map[string]*callers.Client{}}}
	l.Receiver, err = otlp.New(otlp.Deps{
		Append: l.append, Ready: l.ready, Attribute: o.attribute, Stream: o.stream, KeepRepeats: o.keepRepeats, Logger: s.log,
	})
	return l, err
}

// ready is /readyz's answer.
func (l *logs) ready() error {
	select {
	case <-l.service.stopping.unready:
		return localtier.ErrClosed
	default:
	}
	return l.service.serving(l.service.now.Load().writer).Ready()
}

// append is one batch, here or at its shard's owner. Its identity is a producer of its own
// with one append, wherever the shard is: so a retry that comes by another process, or
// after a takeover, is known.
func (l *logs) append(ctx context.Context, b otlp.Batch) error {
	p := localtier.Producer{}
	if b.Identity != "" {
		p = localtier.Producer{ID: b.Identity, Sequence: onlyAppend}
	}
	_, err := l.service.now.Load().writer.AppendAs(ctx, p, b.Stream, b.Rows, l.ack)
	var other *localtier.NotOwnerError
	if errors.As(err, &other) {
		return l.others.append(ctx, other, b)
	}
	return err
}

// onlyAppend is the sequence of a producer's one append.
const onlyAppend = 1

// listen opens the gRPC port, whose part ends with the service's others; nil: none is asked for.
func (l *logs) listen(ctx context.Context) (func(context.Context) error, error) {
	s := l.service
	if s.flags.otlp.grpc == "" {
		return nil, nil //nolint:nilnil // no part is what was asked for
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.flags.otlp.grpc)
	if err != nil {
		return nil, fmt.Errorf("take OTLP over gRPC: %w; give another --otlp-grpc", err)
	}
	guarding, scheme := otlp.Guarding{}, "grpc"
	if a := s.around.access; a.tls != nil {
		guarding.TLS, scheme = a.tls.GRPC(), "grpcs"
	}
	if a := s.around.access; a.tokens != nil {
		guarding.Interceptor = a.tokens.StreamInterceptor(httpapi.ScopeAppend)
	}
	if p := s.tier.watch; p != nil {
		guarding.Trace = p.GRPC()
	}
	s.flags.listen.access.say(s.log, listener.Addr().String())
	s.sayListening(scheme, listener.Addr())
	server := otlp.NewServer(l.Receiver, guarding)
	return func(ctx context.Context) error {
		if err := otlp.Serve(ctx, server, listener, min(drainTime, s.flags.listen.shutdown/2)); err != nil {
			return fmt.Errorf("take OTLP over gRPC: %w", err)
		}
		return nil
	}, nil
}

// forwarder appends at the owners of other shards.
type forwarder struct {
	caller *caller
	ack    callers.Ack

	mu     sync.Mutex
	owners map[string]*callers.Client
}

const (
	// forwardTime bounds one append at another process: the sender waits for it, and is
	// better told to come again.
	forwardTime = 10 * time.Second
	// maxOwners bounds the clients that are kept; a deployment of more writers makes new ones.
	maxOwners = 256
)

// append goes to the owner that the catalog names, and where that one says that it went
// since: as far as the client follows, for forwardTime.
func (f *forwarder) append(ctx context.Context, to *localtier.NotOwnerError, b otlp.Batch) error {
	if to.Owner == "" {
		return to
	}
	c, err := f.client(to.Owner)
	if err != nil {
		return fmt.Errorf("forward to the owner of shard %d: %w", to.Shard, err)
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	o := callers.AppendOptions{Ack: f.ack}
	if b.Identity != "" {
		o.Producer, o.Sequence = b.Identity, onlyAppend
	}
	// A crash from here on: the owner may have the rows. The sender was told nothing, and
	// sends them again under the same identity.
	_, err = c.Append(ctx, b.Stream, b.Rows, o)
	return forwarded(err)
}

// forwarded says of another process's refusal whether the rows may be sent again. Only what
// is certainly their own fault is not: a process of another version may refuse more.
func forwarded(err error) error {
	var p *callers.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Code {
	case "too-large", "invalid-name":
		return fmt.Errorf("%w: %w", otlp.ErrNever, err)
	}
	if p.Code == "unauthenticated" || p.Code == "forbidden" {
		err = fmt.Errorf("%w; give this writer a token with scope append by --token-from", err)
	}
	slow := p.Code == "backpressure" || p.Code == "busy" || p.Code == "disk-full" // what this writer answers 429 itself
	return &otlp.LaterError{After: p.RetryAfter, Slow: slow, Err: fmt.Errorf("forwarded: %w", err)}
}

func (f *forwarder) client(owner string) (*callers.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.owners[owner]; c != nil {
		return c, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = postsAtOnce
	c, err := callers.New(callers.Config{
		URL: owner, Token: f.caller.token, Patience: -1, // its sender has the patience
		HTTP: &http.Client{Transport: f.caller.transport(transport)},
	})
	if err != nil {
		return nil, err
	}
	for old := range maps.Keys(f.owners) {
		if len(f.owners) < maxOwners {
			break
		}
		delete(f.owners, old)
	}
	f.owners[owner] = c
	return c, nil
}
