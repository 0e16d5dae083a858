package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON writes one indented document.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table writes aligned columns; the first row is the head.
func table(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(tw, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// progress is a bar of bytes on a terminal and nothing elsewhere. total < 0: unknown.
func (a *app) progress(total int64, what string) *progressbar.ProgressBar {
	return a.progressOf(total, what, progressbar.OptionShowBytes(true))
}

// progressOf is one whose steps are not bytes, unless an option says so.
func (a *app) progressOf(total int64, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	to := a.err
	if !isTerminal(a.err) || a.json {
		to = io.Discard
	}
	return progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		// No goroutine that turns the spinner: it reads what steps write, without a lock.
		progressbar.OptionSetSpinnerChangeInterval(0),
	}, more...)...)
}

// sayListening tells where a server listens, and that it is ready.
func (a *app) sayListening(scheme string, addr net.Addr) {
	if a.json {
		fmt.Fprintf(a.out, "{\"listening\":\"%s://%s\"}\n", scheme, addr)
		return
	}
	fmt.Fprintf(a.out, "listening on %s://%s\n", scheme, addr)
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func countText(n int64) string { return humanize.Comma(n) }

// countOf is a number of things that are named by their singular: 1 row, 1,234 rows.
func countOf[T ~int | ~uint32 | ~int64 | ~uint64](n T, one string) string {
	if n != 1 {
		one += "s"
	}
	return countText(int64(n)) + " " + one //nolint:gosec // counts are far below
}

func num[T ~uint32 | ~uint64 | ~int64 | ~int](n T) string { return strconv.FormatInt(int64(n), 10) }

// sizeFlag is a byte size written as people do: 64MiB.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<62 {
		return fmt.Errorf("%q is no size; write it like 64MiB", text)
	}
	*s = sizeFlag(n)
	return nil
}

// String of no size is what help texts leave out.
func (s *sizeFlag) String() string {
	if *s == 0 {
		return "0"
	}
	return strings.ReplaceAll(bytesText(int64(*s)), " ", "")
}

// Type names the value in help texts.
func (s *sizeFlag) Type() string { return "size" }
