package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Writer is what appends, consumers and the local tail of reads need.
type Writer interface {
	// AppendAs with the zero Producer is a plain append.
	AppendAs(ctx context.Context, p localtier.Producer, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error)
	Read(ctx context.Context, stream string, from, to segment.Seq) iter.Seq2[segment.Row, error]
	// Flush returns when every row acknowledged so far is published and absorbed.
	Flush(ctx context.Context) error
	Ready() error
	// Await returns once row seq of the shard is durable, LocalShard says which rows are here.
	Await(ctx context.Context, shard segment.Shard, seq segment.Seq) error
	LocalShard(ctx context.Context, shard segment.Shard) (first, next segment.Seq, err error)
	ShardLog
	Consumers
}

// Reader reads what is absorbed.
type Reader interface {
	Rows(ctx context.Context, stream string, from, to segment.Pos) iter.Seq2[coldload.Row, error]
	ShardScanner
	// Check and CheckShard say whether a token stands in the history.
	Check(ctx context.Context, stream string, tok segment.Token) error
	CheckShard(ctx context.Context, shard segment.Shard, tok segment.Token) error
}

// Catalog says where streams and chains begin, and keeps the cursors of closed chains.
type Catalog interface {
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	ShardCatalog
	AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (catalog.ChainRow, error)
	Streams(ctx context.Context, after string, limit int) ([]catalog.Stream, error)
	// Terms and Topologies say which token a row has, and which chain an epoch has for a stream.
	Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
}

// Deps of a Handler.
type Deps struct {
	Writer  Writer // nil: reads only
	Reader  Reader
	Catalog Catalog
	Epoch   segment.Epoch // the writer's, and that of bare seqs
	Shards  uint32        // of that epoch
	// Status is of the whole deployment; Served of this process's shards only, and costs
	// no request. Served may be nil.
	Status func(ctx context.Context) (any, error)
	Served func() any
	// Explain answers questions about keys and rows; nil: there is no such route.
	Explain func(ctx context.Context, q Question) (any, error)
	Logger  *slog.Logger

	// Guard wraps a route of that scope with authentication; nil: none (loopback only). A
	// request's id stands in the answer's X-Request-Id before it is called.
	Guard func(scope string, next http.Handler) http.Handler
	// Wrap is around each route's handler, with Guard inside of it; pattern is Route.String:
	// "GET /v1/status". For request metrics and traces; nil: nothing.
	Wrap func(pattern string, next http.Handler) http.Handler
	// Logs is OTLP/HTTP at POST /v1/logs; nil: there is no such route.
	Logs http.Handler
	// LogsForm is around all that is answered there, so that refusals by others than Logs (Guard,
	// limits) are in OTLP's form, too; nil: they are problems as of any route.
	LogsForm func(next http.Handler) http.Handler
	// Metrics is the scrape at GET /metrics; nil: there is no such route.
	Metrics http.Handler
	// Trimmer serves trim and delete; nil: they answer 501 read-only.
	Trimmer Trimmer
	// Tail is where followers find the process's writer when an epoch ends and another begins:
	// one for all Handlers that a process makes, one after another. nil: a Handler's own.
	Tail *Tail
	// Bodies is the memory of appends under way: one for all Handlers that a process makes, as
	// Tail is. nil: a Handler's own.
	Bodies *Bodies
	// FollowPoll is how often a follower asks the catalog for what other processes absorbed; 0: 1 s.
	FollowPoll time.Duration
	// ReadyCheck says whether catalog and store answer, for a process without a Writer; it is
	// asked every few seconds at most, with a bounded context. nil: they are taken to.
	ReadyCheck func(ctx context.Context) error
	// Holds names what of its work a process that is ready holds back, and why: an answer of
	// /readyz has it, and is no other for it. nil: nothing.
	Holds func() []string
	// Stopping is closed when the process begins to stop: followers end with a problem, so
	// that their clients go on elsewhere. nil: never.
	Stopping <-chan struct{}
}

// Trimmer gives up rows of a stream; a catalog.Trimmer is one.
type Trimmer interface {
	TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error)
	DeleteStream(ctx context.Context, name string) (catalog.Stream, error)
}

type server struct {
	Deps
	places places
	unpack unpackers
	tips   tips
	epochs epochs
	checks checks
}

// Handler serves the routes.
func Handler(d Deps) http.Handler { return d.logsInForm(newServer(d).handler()) }

func newServer(d Deps) *server {
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.FollowPoll <= 0 {
		d.FollowPoll = defaultFollowPoll
	}
	if d.Tail == nil {
		d.Tail = new(Tail)
	}
	if d.Bodies == nil {
		d.Bodies = NewBodies()
	}
	s := &server{Deps: d, places: newPlaces()}
	s.tips.every = d.FollowPoll
	if d.Writer != nil {
		s.Tail.set(d.Writer, d.Epoch, d.Shards)
	}
	return s
}

func (s *server) handler() http.Handler {
	// Browsers are kept from sending here what another site made them send: a process
	// without authentication listens on loopback, where its user's browser is, too.
	return identified(s.paced(straight(s.sameOrigin(s.mux()))))
}

func (s *server) sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem{
			Status: http.StatusForbidden, Code: "cross-origin", Title: "request of another site",
			Detail: "a browser says that another site's page made this request; such requests may only read",
		})
	}))
	return p.Handler(next)
}

// straight refuses paths that are not clean, which the mux would send elsewhere: a name that has
// dots or slashes is written with %2E and %2F.
func straight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.EscapedPath()
		if strings.HasSuffix(p, "/") && p != "/" || path.Clean("/"+p) != p && r.Method != http.MethodConnect {
			noRoute(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func noRoute(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, problem{Status: http.StatusNotFound, Code: "no-such-route", Title: "no such route", Detail: r.Method + " " + r.URL.Path + " is not served here: GET /v1/openapi.json lists the routes; an auditor has none for rows"})
}

// stray answers what no route takes. ServeMux takes the one segment "%2F" for a
// trailing slash, but a stream may be named so.
func (s *server) stray(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allow []string
	for _, t := range s.table() {
		if !strings.EqualFold(r.URL.EscapedPath(), strings.Replace(t.Pattern, "{stream}", "%2F", 1)) || t.off {
			continue
		}
		if t.Method == method {
			r.SetPathValue("stream", "/")
			s.around(t).ServeHTTP(w, r)
			return
		}
		allow = append(allow, t.Method)
	}
	if allow == nil {
		noRoute(w, r)
		return
	}
	only(strings.Join(allow, ", "))(w, r)
}

// only refuses other methods than a route has.
func only(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Code: "no-such-method", Title: "no such method here", Detail: r.Method + " is not for this route; it takes " + allow})
	}
}

// NewServer is an http.Server with this package's limits on headers and time.
// Bodies and answers may take as long as they move.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: unambiguous(h), MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// flush makes what was acknowledged locally survive this disk, too.
func (s *server) flush(w http.ResponseWriter, r *http.Request) {
	if s.Writer != nil {
		if err := s.Writer.Flush(r.Context()); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	reply(w, http.StatusOK, map[string]string{"status": "flushed"})
}

func (s *server) status(w http.ResponseWriter, r *http.Request) {
	st, err := s.Status(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, st)
}

func (s *server) served(w http.ResponseWriter, _ *http.Request) {
	if s.Served == nil {
		reply(w, http.StatusOK, []any{})
		return
	}
	reply(w, http.StatusOK, s.Served())
}

// logs hands OTLP on; its memory is bounded as an append's is.
func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	held := &room{of: s.Bodies.free}
	defer held.release()
	n := r.ContentLength
	if n < 0 || n > MaxBodyBytes {
		n = MaxBodyBytes
	}
	if err := held.grow(n); err != nil {
		s.fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	s.Logs.ServeHTTP(w, r)
}

// The headers of a read. A row's token is made of its line and the term, if the line's epoch
// is the term's: e<epoch>.t<term>.<seq>.
const (
	servedByHeader = "Strandline-Served-By"
	termHeader     = "Strandline-Term"
	epochHeader    = "Strandline-Epoch"
	ownerHeader    = "Strandline-Owner"
	// As seed 000 calls them.
	byOwner    = "owner_resident"
	byColdLoad = "non_owner_cold_load"
)

// servedBy says whether a read is answered by the shard's owner, which has rows that
// are not in the bucket yet, and under which term its rows' positions are known.
func (s *server) servedBy(w http.ResponseWriter, c segment.Chain) {
	t := s.Tail.owner(c)
	if t == nil {
		w.Header().Set(servedByHeader, byColdLoad)
		return
	}
	w.Header().Set(servedByHeader, byOwner)
	w.Header().Set(epochHeader, strconv.FormatUint(uint64(c.Epoch), 10))
	w.Header().Set(termHeader, strconv.FormatUint(uint64(t.terms[c.Shard]), 10))
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a client that went away is not our fault
}
