//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mayFail are the messages that a process may log as an error while a server is away or
// just back. Any other error, and these at any other time, fail the run.
var mayFail = map[string]string{
	"duty failed": "an auditor's duty that met the fault; the next round does it",
}

// judgeLogs looks for errors in what the processes logged.
func (r *run) judgeLogs(context.Context) error {
	files, err := filepath.Glob(filepath.Join(r.site.Dir("logs"), "*.log"))
	if err != nil {
		return err
	}
	r.report.Logged = map[string]int{}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			lines++
			if fault := judgeLine(line, r.windows, r.report.Logged); fault != "" {
				r.ledger.complain("%s: %s", filepath.Base(file), fault)
			}
		}
	}
	if lines == 0 {
		return fmt.Errorf("%d logs, and not a line in them", len(files))
	}
	for _, key := range slices.Sorted(maps.Keys(r.report.Logged)) {
		r.report.note("logged %3d times: %s", r.report.Logged[key], key)
	}
	return nil
}

// judgeLine says what is wrong with a line; count gets warnings and errors by message.
func judgeLine(line string, windows []window, count map[string]int) string {
	var l struct {
		Time  time.Time
		Level string
		Msg   string
	}
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "goroutine ") {
			return "it crashed: " + line
		}
		return "" // what a command says as it ends
	}
	if l.Level == "WARN" || l.Level == "ERROR" {
		count[l.Level+" "+l.Msg]++
	}
	if l.Level != "ERROR" {
		return ""
	}
	inside := slices.ContainsFunc(windows, func(w window) bool { return !l.Time.Before(w.from) && !l.Time.After(w.to) })
	if _, may := mayFail[l.Msg]; may && inside {
		return ""
	}
	return fmt.Sprintf("an error that nothing excuses: %.1000s", line)
}
