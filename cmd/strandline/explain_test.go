package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strandline/strandline/check"
)

// TestExplain: the commands of the runbook, over a tier that was stopped.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	cli(t, strings.Repeat("some row or other\n", 1000), "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	for query, want := range map[string]int{
		"?key=seg/00000001.00000000.0000000000000001": http.StatusOK, "?stream=s&pos=7&read=true": http.StatusOK,
		"?stream=s&pos=0": http.StatusBadRequest, "?key=s": http.StatusBadRequest, "?stream=nope&pos=1": http.StatusNotFound,
	} {
		resp, err := http.Get(up.url + "/v1/explain" + query)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != want || want == http.StatusOK && !strings.Contains(string(body), `"situation":`) {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}
	up.end(t)
	explain := func(args ...string) result {
		return cli(t, "", append(append([]string{"explain"}, args...), "--dir", dir)...)
	}
	const slot = "seg/00000001.00000000.0000000000000001"
	explain(slot).want(t, exitOK, "owes-settle", "1,000 live rows", "settle-age")
	for _, pos := range []string{"first", "1.7", "7", "e1.t1.7"} {
		explain("s", pos, "--read").want(t, exitOK, "live: read whole", slot, "payload 17 bytes")
	}
	for _, pos := range []string{"last", "tip"} {
		explain("s", pos).want(t, exitOK, "row 1.1000", "live: served by slot")
	}
	explain("s", "99999").want(t, exitOK, "beyond-tip", "owner")

	var e check.Explanation
	out := explain("s", "7", "--json")
	if err := json.Unmarshal([]byte(out.out), &e); err != nil || e.Situation != check.IsLive || e.Row == nil || e.Row.Ref.Key != slot || e.Row.Seq != 7 {
		t.Fatalf("%v %s", err, out.out)
	}
	out = explain(slot, "--json")
	if err := json.Unmarshal([]byte(out.out), &e); err != nil || e.Key == nil || e.Key.LiveRows != 1000 || len(e.Key.Copies) != 1 {
		t.Fatalf("%v %s", err, out.out)
	}

	explain("nope", "1").want(t, exitFailed, "no such stream", "strandline streams")
	explain("hello").want(t, exitFailed, "no bucket has it", "STREAM POS")
	explain("s").want(t, exitUsage, "is a stream", "explain s last")
	for _, bad := range []string{"0", "x", "e1.t7.7", "9.1", ""} {
		explain("s", bad).want(t, exitUsage)
	}
	cli(t, "", "explain", "--dir", dir).want(t, exitUsage)

	file := filepath.Join(dir, "bucket", filepath.FromSlash(slot)+"@")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body[170] ^= 1
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	explain("s", "7").want(t, exitOK, "live")
	explain("s", "7", "--read").want(t, exitDamage, "damaged", "accept-loss")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	explain("s", "7").want(t, exitDamage, "missing")
	explain(slot).want(t, exitDamage, "missing", "lifecycle rule")
}
