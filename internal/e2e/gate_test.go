//go:build unix

package e2e

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// echo is a server that says what it hears.
func echo(t *testing.T) *Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }() // until its client ends
		}
	}()
	g, err := OpenGate(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		_ = l.Close() // nothing is under way any more
		<-done
	})
	return g
}

// said sends and waits for the echo.
func said(t *testing.T, g *Gate, c net.Conn, within time.Duration) error {
	t.Helper()
	if c == nil {
		var err error
		if c, err = net.Dial("tcp", g.Address()); err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // asked all
	}
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

func TestGate(t *testing.T) {
	g := echo(t)
	c, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // it was reset
	if err := said(t, g, c, time.Minute); err != nil {
		t.Fatal("open: ", err)
	}
	g.Silence()
	for _, conn := range []net.Conn{c, nil} {
		if err := said(t, g, conn, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("silent: %v", err)
		}
	}
	if silent, refused := g.Hits(); silent == 0 || refused != 0 {
		t.Errorf("silent: hits %d, %d", silent, refused)
	}
	g.Refuse()
	for _, conn := range []net.Conn{c, nil} {
		if err := said(t, g, conn, time.Minute); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("refusing: %v", err)
		}
	}
	if _, refused := g.Hits(); refused == 0 {
		t.Error("refusing: no hit")
	}
	g.Open()
	if err := said(t, g, nil, time.Minute); err != nil {
		t.Errorf("open again: %v", err)
	}

	// What a silence swallowed does not arrive later: the connection is lost with it.
	if c, err = net.Dial("tcp", g.Address()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // it was reset
	if err := said(t, g, c, time.Minute); err != nil {
		t.Fatal("open: ", err)
	}
	before, _ := g.Hits()
	g.Silence()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	for now, _ := g.Hits(); now == before; now, _ = g.Hits() {
		runtime.Gosched()
	}
	g.Open()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 4)); err == nil {
		t.Errorf("after a silence %d bytes of it arrive", n)
	}
}
