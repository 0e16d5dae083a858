// Package client talks to Strandline's writers and readers over HTTP: append rows, read and
// follow streams and shards, keep durable consumers, trim and delete.
//
//	c, err := client.New(client.Config{URL: "http://writer-0:8420,http://writer-1:8420"})
//	got, err := c.Append(ctx, "orders", []segment.Row{{Payload: []byte("one")}}, client.AppendOptions{})
//	for row, err := range c.Rows(ctx, "orders", client.ReadOptions{Follow: true}) { … }
//
// What it takes off its callers:
//
//   - Which server. Any configured URL will do: one that does not serve a shard says who does
//     (421), the client goes there and remembers it, and forgets it when that server stops.
//   - Lost answers. An append carries an Idempotency-Key of the client's making, so that it may be
//     sent again without coming in twice, also to another server. See AppendOptions for producers
//     with numbers of their own, and for appends that are sent once at most.
//   - Refusals that pass. A server that is busy or has to wait for its bucket says when to come
//     back (503, Retry-After): the client does, until the context ends.
//   - Reads that are cut. A read goes on behind the row that it delivered last, never delivers a
//     row twice or out of order, and ends with an error if it is not whole.
//
// Errors: what a server said is a *Problem, and errors.Is tells its kind (ErrNotOwner, ErrTrimmed,
// ErrForked …). ErrUnreachable: no server answered, or it ended the TLS
// handshake (*HandshakeError). ErrUnknown: it may have been carried out, and
// the answer is lost. The end of the context is context.Cause of it, with the last answer beside it.
//
// Redirects are not followed, and a bearer token goes to configured URLs and to owners that such a
// server named, never over a weaker scheme than the one that named them.
//
// Files: client.go (Config), problem.go and errors.go (what goes wrong), call.go (one request, many
// attempts), handshake.go (a TLS handshake that a server ended), journey.go (where to go next, and when), owners.go (who serves what), backoff.go,
// append.go, appender.go, body.go (rows as a body), batcher.go (rows of many goroutines in few requests),
// rows.go, reading.go and lines.go (reads that go on), consumers.go, streams.go, admin.go.
//
// What it does not do: read the bucket (package coldload does), or split an append that is too
// large for one request.
package client
