package deploycheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	inline     = regexp.MustCompile("`(strandline [a-z][^`]*)`")
)

// commands are those of the runbook that call the product: whole lines of its blocks, up
// to a pipe, and those within sentences that have no placeholder.
func commands(t *testing.T) (out []string) {
	t.Helper()
	page := read(t, runbook)
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		for _, line := range strings.Split(block[1], "\n") {
			line, _, _ = strings.Cut(line, " #")
			line, _, _ = strings.Cut(line, " | ")
			if strings.HasPrefix(line, "strandline ") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	for _, m := range inline.FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// placeholders of the runbook, as this deployment has them.
func placed(command, data, segment string) string {
	return strings.NewReplacer(`"$STRANDLINE_DIR"/writer/00000001.00000000/0000000000000001.seg`, segment, `"$STRANDLINE_DIR"`, data,
		"accept-loss KEY STREAM", "accept-loss pack/none s-0", "explain KEY", "explain pack/00000001.00000000/0000000000000001-0000000000000002",
		"explain STREAM SEQ", "explain s-0 1", "rm SHARD NAME", "rm 0 nobody", "rm DIRECTORY", "rm /nowhere").Replace(command)
}

// TestRunbookCommands runs each against a real deployment. What they find is theirs to
// say (a key that is not there, a loss that is none); what they must not say is that they
// were called wrongly.
func TestRunbookCommands(t *testing.T) {
	bin := product(t)
	data := filepath.Join(t.TempDir(), "data")
	up := process(t, bin, "up", "--dir", data, "--shards", "2", "--http", "127.0.0.1:0", "--segment-age", "1s")
	for s := range 4 {
		post(t, fmt.Sprintf("%s/v1/streams/s-%d/rows?ack=shared", up, s), "a row\n")
	}
	segments, err := filepath.Glob(filepath.Join(data, "writer", "00000001.00000000", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segment: %v", err)
	}
	list := commands(t)
	if len(list) < 40 {
		t.Fatalf("only %d commands", len(list))
	}
	done := map[string]bool{}
	for _, c := range list {
		if done[c] || c == "strandline auditor" { // a service, which does not end
			continue
		}
		done[c] = true
		args := strings.Fields(placed(c, data, segments[0]))[1:]
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), "STRANDLINE_DIR="+data)
		out, err := cmd.CombinedOutput()
		code := cmd.ProcessState.ExitCode()
		t.Logf("%s -> %d", c, code)
		if code == 2 || strings.Contains(string(out), "unknown flag") || strings.Contains(string(out), "unknown command") {
			t.Errorf("%s: %v\n%s", c, err, out)
		}
	}
}
