package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// tight serves appends with room for one body of a MiB or so, over TCP.
func tight(t *testing.T) string {
	t.Helper()
	var got taken
	s := newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1})
	s.Bodies.free = semaphore.NewWeighted(2 << 20)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(s.handler(), discard())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// post is a request as it goes over the wire, with a body that no refusal waits for.
func post(path, header string, body []byte) []byte {
	return append([]byte(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n", path, len(body), header)), body...)
}

// TestRefusedSender: who sends all of a body before it reads anything finds the refusal, and
// not a reset in its place.
func TestRefusedSender(t *testing.T) {
	at := tight(t)
	body := bytes.Repeat([]byte("0123456789abcde\n"), 16<<16) // 16 MiB: more than sockets hold
	for _, path := range []string{"/v1/streams/s/rows", "/v1/streams/s/rows?bogus=1", "/v1/nothing", "//v1"} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(post(path, "", body)); err != nil {
			t.Errorf("%s: the sender was cut: %v", path, err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: read the answer: %v", path, err)
		}
		var p problem
		if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || p.Code == "" || answer.ContentLength < 0 {
			t.Errorf("%s: %s: %+v %v", path, answer.Status, p, err)
		}
		if path == "/v1/streams/s/rows" && (p.Code != "busy" || answer.Header.Get("Retry-After") != "1") {
			t.Errorf("%s: %s %v: %+v", path, answer.Status, answer.Header, p)
		}
		_ = answer.Body.Close() // read to its end
		_ = conn.Close()        // read to its end
	}
}

// TestRefusedBodyIsNoRequest: what nobody read of a refused body is not taken for the next
// request of the connection, whether its sender is let come to the end or cut.
func TestRefusedBodyIsNoRequest(t *testing.T) {
	at := tight(t)
	const inner = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for size, want := range map[int]int{3 << 20: 2, 12 << 20: 2, MaxBodyBytes: 2, 3 * lingerBytes: 1} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(strings.Repeat(inner, size/len(inner)))
		last := strings.Replace(inner, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
		var sending sync.WaitGroup
		sending.Go(func() { _, _ = conn.Write(append(post("/v1/streams/s/rows", "", body), last...)) }) // may be cut
		answer, _ := io.ReadAll(conn)                                                                   // likewise, behind the first answer
		if n := bytes.Count(answer, []byte("HTTP/1.1 ")); n != want || bytes.Contains(answer, []byte("HTTP/1.1 400")) {
			t.Errorf("a body of %d bytes and a request behind it are answered %d times, want %d: %.900s", size, n, want, answer)
		}
		_ = conn.Close() // it was read to its end
		sending.Wait()
	}
}

// TestUnreadBody: a body that came, and that nobody read, cuts no answer short.
func TestUnreadBody(t *testing.T) {
	at := tight(t)
	for _, body := range []string{"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Content-Length: 5\r\n\r\nhello"} {
		for _, request := range []string{"POST /v1/nothing", "POST /v1/flush", "GET /healthz", "GET /v1/openapi.json"} {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: x\r\n"+body); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			if n, err := io.Copy(io.Discard, answer.Body); err != nil || n == 0 {
				t.Errorf("%s with %.8q: %s, and %d bytes: %v", request, body, answer.Status, n, err)
			}
			_ = answer.Body.Close() // read to its end
			_ = conn.Close()        // read to its end
		}
	}
}

// TestRefusedExpect: a body that is asked for first is not asked for to be thrown away.
func TestRefusedExpect(t *testing.T) {
	conn, err := net.Dial("tcp", tight(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // read to its end
	head := post("/v1/nothing", "Expect: 100-continue\r\n", make([]byte, 4<<20))
	if _, err := conn.Write(head[:len(head)-4<<20]); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(bodyGrace / 2)); err != nil { // what a wait for the body would take
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
		t.Errorf("%v: %s", err, answer)
	}
}

// TestLingerIsBounded: a sender that does not come to its end is cut, also where net/http
// would wait for the little that is left.
func TestLingerIsBounded(t *testing.T) {
	for name, length := range map[string]int{"slow": 30_000_000, "nearly at its end": 11*bodyRate + 100<<10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got taken
				l := newPipes()
				srv := NewServer(newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1}).handler(), discard())
				go func() { _ = srv.Serve(l) }()
				defer func() { _ = srv.Close() }()
				conn := l.dial()
				var sending sync.WaitGroup
				began := time.Now()
				sending.Go(func() {
					fmt.Fprintf(conn, "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
					for n := 0; n+bodyRate <= length; n += bodyRate {
						if _, err := conn.Write(make([]byte, bodyRate)); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				})
				answer, _ := io.ReadAll(conn) // a pipe has no reset
				if took := time.Since(began); took < lingerTime || took > lingerTime+2*time.Second || !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
					t.Errorf("after %v: %.300s", took, answer)
				}
				_ = conn.Close() // a pipe's Close does not fail
				sending.Wait()
				synctest.Wait()
			})
		})
	}
}

// TestBodiesOfAProcess: bodies count with the frames that become of them, in all Handlers
// that share them, and hold nothing once they are answered.
func TestBodiesOfAProcess(t *testing.T) {
	var got taken
	bodies := NewBodies()
	const all = 3<<20 + 64<<10
	bodies.free = semaphore.NewWeighted(all)
	old := newServer(Deps{Writer: taking(&got), Epoch: 1, Shards: 1, Bodies: bodies})
	next := newServer(Deps{Writer: taking(&got), Epoch: 2, Shards: 1, Bodies: bodies})
	row := func(n int) []byte { return bytes.Repeat([]byte("a"), n) }
	if w, p := sent(t, old.handler(), row(1<<20), nil); w.Code != http.StatusOK {
		t.Errorf("a buffer of 1 MiB, one of 2 to see its end, then the frames: %+v", p)
	}
	if _, p := sent(t, old.handler(), row(3<<19), nil); p.Code != "busy" {
		t.Errorf("2 MiB and a frame of 1.5: %+v", p)
	}
	if !bodies.free.TryAcquire(all) {
		t.Fatal("room is held after the answers")
	}
	if _, p := sent(t, next.handler(), row(1), nil); p.Code != "busy" {
		t.Errorf("the next epoch's Handler has room of its own: %+v", p)
	}
}
