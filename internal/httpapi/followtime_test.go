package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// TestFollowBeats: a connection is never silent for longer than a beat, in either form, and
// waiting for a stream that does not exist costs one look a turn.
func TestFollowBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := newServer(Deps{Reader: &bucket{looks: [][]segment.Seq{nil}}, Catalog: &bucket{}, Epoch: 1, Shards: 1})
		srv := NewServer(s.handler(), discard())
		go func() { _ = srv.Serve(l) }()
		for accept, beat := range map[string]string{"*/*": "", eventsType: ": alive"} {
			conn := l.dial()
			_, _ = fmt.Fprintf(conn, "GET /v1/streams/s/rows?follow=true HTTP/1.0\r\nAccept: %s\r\n\r\n", accept)
			lines := bufio.NewScanner(conn)
			for lines.Scan() && lines.Text() != "" {
				if kind, ok := strings.CutPrefix(lines.Text(), "Content-Type: "); ok && kind != ndjsonType && kind != eventsType {
					t.Errorf("%s: %s", accept, kind)
				}
			}
			began, asked := time.Now(), s.tips.asked.Load()
			for i := range 4 {
				if !lines.Scan() || lines.Text() != beat {
					t.Fatalf("%s: beat %d: %q", accept, i, lines.Text())
				}
				if beat != "" && (!lines.Scan() || lines.Text() != "") {
					t.Fatalf("%s: %q", accept, lines.Text())
				}
			}
			if took := time.Since(began); took != 4*beatEvery {
				t.Errorf("%s: four beats took %v", accept, took)
			}
			if n := s.tips.asked.Load() - asked; n < 58 || n > 62 {
				t.Errorf("%s: %d looks in a minute", accept, n)
			}
			_ = conn.Close()
			synctest.Wait()
			if len(s.places.follows) != 0 {
				t.Errorf("%s: a client that went away is followed", accept)
			}
		}
		_ = srv.Close()
	})
}

// TestFollowSlowClient: who takes nothing loses its place in time.
func TestFollowSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := newServer(Deps{Reader: &bucket{looks: [][]segment.Seq{nil}}, Catalog: &bucket{}, Epoch: 1, Shards: 1})
		srv := NewServer(s.handler(), discard())
		go func() { _ = srv.Serve(l) }()
		conn := l.dial()
		_, _ = fmt.Fprint(conn, "GET /v1/streams/s/rows?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(writeTime - time.Second)
		synctest.Wait()
		if len(s.places.follows) != 1 {
			t.Error("it has no place already")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(s.places.follows) != 0 {
			t.Error("it has its place still")
		}
		_ = conn.Close()
		_ = srv.Close()
	})
}

// plenty is a stream of so many absorbed rows of a KiB.
type plenty struct {
	bucket
	rows segment.Seq
}

func (p *plenty) Stream(_ context.Context, name string) (catalog.Stream, error) {
	return catalog.Stream{Name: name, Last: segment.Pos{Epoch: 1, Seq: p.rows}}, nil
}

func (p *plenty) Rows(_ context.Context, _ string, from, to segment.Pos) iter.Seq2[coldload.Row, error] {
	return func(yield func(coldload.Row, error) bool) {
		for seq := max(from.Seq, 1); seq <= to.Seq; seq++ {
			if !yield(coldload.Row{Epoch: 1, Row: segment.Row{Seq: seq, Payload: make([]byte, 1024)}}, nil) {
				return
			}
		}
	}
}

// TestFollowStuckClients: followers that take nothing hold no place of those who read from the
// bucket, however often they come back, and the one that takes its rows late misses none.
func TestFollowStuckClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newPipes(), &plenty{rows: 200}
		s := newServer(Deps{Reader: p, Catalog: p, Epoch: 1, Shards: 1})
		srv := NewServer(s.handler(), discard())
		go func() { _ = srv.Serve(l) }()
		defer func() { _ = srv.Close() }()
		follow := func(limit int) net.Conn {
			conn := l.dial()
			_, _ = fmt.Fprintf(conn, "GET /v1/streams/s/rows?follow=true&limit=%d HTTP/1.0\r\n\r\n", limit)
			return conn
		}
		var stuck []net.Conn
		for range 2 * maxCatchUps {
			stuck = append(stuck, follow(int(p.rows)))
		}
		synctest.Wait()
		began := time.Now()
		if n := rowsIn(follow(100)); n != 100 {
			t.Errorf("%d rows of 100", n)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("beside followers that take nothing it took %v", took)
		}
		for _, conn := range stuck {
			if n := rowsIn(conn); n != int(p.rows) {
				t.Errorf("taken late: %d rows of %d", n, p.rows)
			}
		}
		synctest.Wait()
		if n := len(s.places.catchUps); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// rowsIn reads an answer to its end, and counts the rows that come in order.
func rowsIn(conn net.Conn) (n int) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if strings.Contains(lines.Text(), fmt.Sprintf(`"seq":%d,`, n+1)) {
			n++
		}
	}
	return n
}
