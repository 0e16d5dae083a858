package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Limits of a request. Each bounds memory or time that a client can take.
const (
	// MaxBodyBytes holds one append call; larger batches go in several.
	MaxBodyBytes = 32 << 20
	// MaxBodiesBytes of all appends under way: as many small ones as there may be
	// requests, but no more than a few of the largest.
	MaxBodiesBytes = 512 << 20
	// MaxRows of one append call: an empty row takes no byte of a body, but 64 in memory.
	MaxRows = 1 << 18
	// MaxRequests under way at once; more are told to come back.
	MaxRequests       = 512
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// Writer is what appends, consumers and the local tail of reads need.
type Writer interface {
	// AppendAs with the zero Producer is a plain append.
	AppendAs(ctx context.Context, p localtier.Producer, stream string, rows []segment.Row, ack localtier.Ack) (localtier.Result, error)
	Read(ctx context.Context, stream string, from, to segment.Seq) iter.Seq2[segment.Row, error]
	// Flush returns when every row acknowledged so far is published and absorbed.
	Flush(ctx context.Context) error
	Ready() error
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
	// Metrics is the scrape at GET /metrics; nil: there is no such route.
	Metrics http.Handler
	// Trimmer serves trim and delete; nil: they answer 501 read-only.
	Trimmer Trimmer
	// FollowPoll is how often a follower asks the catalog for what other processes absorbed; 0: 1 s.
	FollowPoll time.Duration
	// ReadyCheck says whether catalog and store answer, for a process without a Writer; it is
	// asked every few seconds at most, with a bounded context. nil: they are taken to.
	ReadyCheck func(ctx context.Context) error
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
	terms  map[segment.Shard]segment.Term // of the shards that are served here
	slots  chan struct{}
	bodies *semaphore.Weighted
}

// Handler serves the routes.
func Handler(d Deps) http.Handler {
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	s := &server{Deps: d, slots: make(chan struct{}, MaxRequests), bodies: semaphore.NewWeighted(MaxBodiesBytes)}
	if d.Writer != nil {
		s.terms = map[segment.Shard]segment.Term{}
		for _, st := range d.Writer.Status() {
			s.terms[st.Chain.Shard] = st.Term
		}
	}
	return s.mux()
}

func (s *server) alive(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "alive"})
}

// stray answers what no route takes. ServeMux takes the one segment "%2F" for a
// trailing slash, but a stream may be named so.
func (s *server) stray(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.URL.EscapedPath(), "/v1/streams/%2F/rows") {
		writeProblem(w, problem{Status: http.StatusNotFound, Code: "no-such-route", Title: "no such route", Detail: r.Method + " " + r.URL.Path})
		return
	}
	r.SetPathValue("stream", "/")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, t := range s.table() {
		if t.Pattern == "/v1/streams/{stream}/rows" && t.Method == method {
			s.around(t).ServeHTTP(w, r)
			return
		}
	}
	only("GET, HEAD, POST")(w, r)
}

// only refuses other methods than a route has.
func only(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Code: "no-such-method", Title: "no such method here", Detail: r.Method})
	}
}

// NewServer is an http.Server with this package's limits on headers and time.
// Bodies and answers may take as long as they move.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// admit bounds the requests under way.
func (s *server) admit(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			next(w, r)
		default:
			busy(w)
		}
	})
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "busy", Title: "too many requests under way"})
}

func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.Writer != nil {
		if err := s.Writer.Ready(); err != nil {
			w.Header().Set("Retry-After", "1")
			writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "not-ready", Title: "not ready", Detail: err.Error()})
			return
		}
	}
	reply(w, http.StatusOK, map[string]string{"status": "ready"})
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

// The headers of a read. A row's token is made of its line and the term:
// e<epoch>.t<term>.<seq>.
const (
	servedByHeader = "Strandline-Served-By"
	termHeader     = "Strandline-Term"
	// As seed 000 calls them.
	byOwner    = "owner_resident"
	byColdLoad = "non_owner_cold_load"
)

// servedBy says whether a read is answered by the shard's owner, which has rows that
// are not in the bucket yet, and under which term its rows' positions are known.
func (s *server) servedBy(w http.ResponseWriter, c segment.Chain) {
	term, mine := s.terms[c.Shard]
	if !mine || c.Epoch != s.Epoch {
		w.Header().Set(servedByHeader, byColdLoad)
		return
	}
	w.Header().Set(servedByHeader, byOwner)
	w.Header().Set(termHeader, strconv.FormatUint(uint64(term), 10))
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a client that went away is not our fault
}
