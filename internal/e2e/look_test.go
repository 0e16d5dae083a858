//go:build unix

package e2e

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestJudgeConsumer(t *testing.T) {
	_, read := history()
	again := append(slices.Clone(read[:3]), read...)
	for _, x := range []struct {
		name string
		seen []row
		lost bool
		ok   bool
	}{
		{"all", read, false, true},
		{"all, disk lost", read, true, true},
		{"again", again, false, false},
		{"again, disk lost", again, true, true},
		{"one not", read[1:], false, false},
		{"one not, disk lost", read[1:], true, false},
		{"one that is not in the chain, disk lost", append(slices.Clone(read), row{"s", 99, "lost"}), true, true},
		{"one that is not in the chain", append(slices.Clone(read), row{"s", 99, "lost"}), false, false},
	} {
		if got := judgeConsumer(1, x.seen, read, x.lost); (got == nil) != x.ok {
			t.Errorf("%s: %q", x.name, got)
		}
	}
	if judgeSent("s", len(read), read) != nil || judgeSent("s", len(read)+1, read) == nil || judgeSent("s", len(read)+3, again) == nil {
		t.Error("OTLP counts are not compared")
	}
}

func TestJudgeLine(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
	w := []window{{at.Add(-time.Second), at.Add(time.Second)}}
	line := func(level, msg string, at time.Time) string {
		return `{"time":"` + at.Format(time.RFC3339Nano) + `","level":"` + level + `","msg":"` + msg + `"}`
	}
	for text, ok := range map[string]bool{
		line("INFO", "x", at):                           true,
		line("WARN", "x", at):                           true,
		line("ERROR", "duty failed", at):                true,
		line("ERROR", "duty failed", at.Add(time.Hour)): false,
		line("ERROR", "an object is lost", at):          false,
		"panic: nil":                                    false,
		"1 object":                                      true,
	} {
		if got := judgeLine(text, w, map[string]int{}); (got == "") != ok {
			t.Errorf("%s: %q", text, got)
		}
	}
}

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
}
