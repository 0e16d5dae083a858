package httpapi

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
