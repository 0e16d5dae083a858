package httpapi

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/strandline/strandline/segment"
)

// errReadOnly: there is no writer here, and nobody is known who takes the rows.
var errReadOnly = errors.New("this process takes no rows; ask a writer")

// taker says who takes a stream's rows, at a process that takes none.
func (s *server) taker(ctx context.Context, stream string) error {
	if err := segment.CheckStream(stream); err != nil {
		return err
	}
	return cmp.Or(s.servedElsewhere(ctx, stream), errReadOnly)
}

// without takes away the routes that nobody serves here: a process without a Reader has
// no rows, only its health and what is known of the deployment.
func (s *server) without(table []route) []route {
	if s.Reader != nil || s.Catalog == nil { // Routes asks a server of nobody for all there are
		return table
	}
	for i := range table {
		switch p := table[i].Pattern; {
		case p == "/v1/flush", p == "/v1/streams", p == "/v1/shards", strings.HasPrefix(p, "/v1/streams/"), strings.HasPrefix(p, "/v1/shards/"):
			table[i].off = true
		}
	}
	return table
}
