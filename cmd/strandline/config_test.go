package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/internal/settings"
)

// knobsInCode are the flags of the services, by command.
func knobsInCode() map[string]*pflag.FlagSet {
	out := map[string]*pflag.FlagSet{}
	for _, c := range commandsOf((&app{}).root()) {
		if slices.Contains(services(), c.Path) {
			out[c.Path] = c.Flags
		}
	}
	return out
}

// TestEveryKnobIsDescribed: each flag of a service has a row, each row a flag, and
// docs/settings.md says the same.
func TestEveryKnobIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]string{} // knob and commands: the row
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|.*$").FindAllStringSubmatch(string(text), -1) {
		if doc[m[0]] != "" {
			t.Errorf("the document has a row twice: %s", m[0])
		}
		doc[m[0]] = m[1]
	}
	used, rows := map[string]bool{}, map[string][]string{}
	for _, command := range services() {
		knobsInCode()[command].VisitAll(func(f *pflag.Flag) {
			if slices.Contains(notSettings(), f.Name) {
				return
			}
			k, found := settings.Find(command, f.Name)
			if !found {
				t.Errorf("--%s of %s has no row in internal/settings/table.go", f.Name, command)
				return
			}
			used[k.Name+fmt.Sprint(k.Commands)] = true
			row := fmt.Sprintf("| `%s` | %s | %s | %s | %s |", f.Name, shownDefault(f), k.Unit, k.Text(), k.Class)
			rows[row] = append(rows[row], command)
		})
	}
	for _, k := range settings.Knobs() {
		if !used[k.Name+fmt.Sprint(k.Commands)] {
			t.Errorf("no service has --%s %v any more", k.Name, k.Commands)
		}
	}
	var missing []string
	for row, commands := range rows {
		full := row + " " + strings.Join(commands, ", ") + " |"
		if doc[full] == "" {
			missing = append(missing, full)
		}
		delete(doc, full)
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("docs/settings.md lacks:\n%s", strings.Join(missing, "\n"))
	}
	for row := range doc {
		t.Errorf("docs/settings.md has a row that is no knob's: %s", row)
	}
}

func shownDefault(f *pflag.Flag) string {
	if f.DefValue == "" || f.DefValue == "[]" {
		return ""
	}
	return "`" + f.DefValue + "`"
}

// TestRangesAreKept: what the table says of a range is what the commands refuse and take.
func TestRangesAreKept(t *testing.T) {
	t.Setenv(settings.FileVariable, "")
	// What has to be given beside a value that is at the end of its range.
	beside := map[string][]string{
		"drain-delay":          {"--shutdown-timeout", "1h"},
		"auditor-orphan-grace": {"--auditor-read-grace", "1s"},
		"cache-bytes":          nil,
	}
	base := map[string][]string{"cache": {"--cache-dir", t.TempDir(), "--store", "standard=file:///x"}}
	tried := 0
	for _, command := range services() {
		knobsInCode()[command].VisitAll(func(f *pflag.Flag) {
			k, _ := settings.Find(command, f.Name)
			check := func(value string, code int) {
				if value == "" {
					return
				}
				tried++
				args := with([]string{"config", command, "--check", "--"}, base[command]...)
				if code == exitOK {
					args = with(args, beside[f.Name]...)
				}
				r := cli(t, "", with(args, "--"+f.Name+"="+value)...)
				if r.code != code {
					t.Errorf("%s --%s=%s: exit %d, want %d: %s", command, f.Name, value, r.code, code, r.err)
				}
				named := strings.Split(f.Name, "-")
				if code != exitOK && !strings.Contains(r.err, named[len(named)-1]) && !strings.Contains(r.err, named[0]) {
					t.Errorf("%s --%s=%s: the refusal does not name it: %s", command, f.Name, value, r.err)
				}
			}
			check(k.Least, exitOK)
			check(k.Most, exitOK)
			check(k.Below, exitUsage)
			check(k.Above, exitUsage)
			if (k.Least != "" && k.Below == "") != (f.Name == "never") || k.Most != "" && k.Above == "" {
				t.Errorf("--%s: a range without a value beyond it is not tested", f.Name)
			}
		})
	}
	if tried < 100 {
		t.Errorf("only %d values were tried", tried)
	}
}

// TestConfig: what is in force, from where, and without secrets.
func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strandline.yaml")
	text := "catalog: postgres://me:hush@h1,h2/db\nstore:\n  - standard=s3://key:hush@bucket/tier\nlease-time: 2m\nwriter:\n  shards: 0-3\n  segment-age: 20s\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STRANDLINE_LEASE_TIME", "3m")
	t.Setenv("STRANDLINE_TOKEN", "hush")
	r := cli(t, "", "config", "writer", "--config", path, "--json", "--", "--http", "127.0.0.1:1")
	r.want(t, exitOK)
	var out struct {
		File     string
		Commands []commandOut
	}
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || out.File != path || len(out.Commands) != 1 {
		t.Fatalf("%v: %s", err, r.out)
	}
	got := map[string]string{}
	for _, k := range out.Commands[0].Knobs {
		got[k.Name] = fmt.Sprintf("%s %s %s %s", k.Value, k.From, strings.TrimPrefix(k.Where, path), k.Class)
		if k.Unit == "" || k.Help == "" {
			t.Errorf("%s has no unit or help", k.Name)
		}
	}
	for name, want := range map[string]string{
		"http": "127.0.0.1:1 flag  tunable", "lease-time": "3m0s env STRANDLINE_LEASE_TIME tunable", "shards": "0-3 file :6 tunable",
		"segment-age": "20s file :7 tunable", "segment-size": "64MiB default  tunable", "catalog": "postgres://me:set@h1,h2/db file :1 invariant",
		"store": "standard=s3://key:set@bucket/tier file :3 invariant",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	t.Setenv(settings.FileVariable, path)
	all := cli(t, "", "config")
	all.want(t, exitOK, "strandline up", "strandline writer", "strandline auditor", "strandline reader", "strandline cache", "plan TTL", "5m0s", "job deadline")
	for _, r := range []result{r, all, cli(t, "", "config", "reader"), cli(t, "", "config", "--check")} {
		if strings.Contains(r.out+r.err, "hush") {
			t.Errorf("a secret is shown: %s%s", r.out, r.err)
		}
	}
	cli(t, "", "config", "topology", "set").want(t, exitOK, "retention")
	cli(t, "", "config", "wrtier").want(t, exitUsage, "no command")
	cli(t, "", "config", "--", "--steal").want(t, exitUsage, "config COMMAND -- --steal")
	cli(t, "", "config", "writer", "--", "--stael").want(t, exitUsage, "stael")
}

// TestConfigCheck: all faults of file, environment and ranges in one run, whatever it runs.
func TestConfigCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strandline.yaml")
	text := "segment-sise: 1GiB\nauditor:\n  auditor-read-grace: 2h\n  auditor-lease: 0s\n  budget-bytes: 1KiB\nwriter:\n  segment-age: 1ms\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(settings.FileVariable, path)
	t.Setenv("STRANDLINE_BATCH_WINDOUW", "1s")
	for _, args := range [][]string{{"config", "--check"}, {"config", "--check", "--json"}} {
		cli(t, "", args...).want(t, exitUsage, "STRANDLINE_BATCH_WINDOW?", path+":1: segment-sise", "did you mean segment-size?",
			"strandline auditor: --auditor-orphan-grace 1h0m0s: give at least the read grace", "strandline auditor: --auditor-lease 0s: give 1s to 1h",
			"strandline auditor: --budget-bytes", "strandline writer: segment-age is 1ms")
	}
	cli(t, "", "streams", "--dir", t.TempDir()).want(t, exitUsage, "segment-sise", "WINDOUW") // each command says what is wrong with the file
	os.Unsetenv("STRANDLINE_BATCH_WINDOUW")
	if err := os.WriteFile(path, []byte("segment-age: 2s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "config", "--check").want(t, exitOK)
	if r := cli(t, "", "config", "--check"); r.out != "" || r.err != "" {
		t.Errorf("a check without a fault says something: %+v", r)
	}
}

// TestSettingsReachAService: from all three places at once.
func TestSettingsReachAService(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "strandline.yaml")
	if err := os.WriteFile(path, []byte("dir: "+filepath.Join(dir, "data")+"\nup:\n  shards: 3\n  http: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STRANDLINE_ACK", "shared")
	up := start(t, "up", "--config", path)
	cli(t, "x\n", "append", "s", "--server", up.url).want(t, exitOK)
	cli(t, "", "status", "--config", path).want(t, exitOK, "00000001.00000002")
	if r := cli(t, "", "cat", "s", "--config", path); r.out != "x\n" { // shared: it is in the bucket
		t.Errorf("%+v", r)
	}
	up.end(t)
}

// TestAuditorRefusals: what makes no sense together is told.
func TestAuditorRefusals(t *testing.T) {
	dir := t.TempDir()
	cli(t, "", "auditor", "--dir", dir, "--linger", "1s", "--auditor-lease", "0s", "--settle-lease", "2h", "--dry-run").
		want(t, exitUsage, "--linger", "--once", "--auditor-lease 0s", "--settle-lease 2h", "--dry-run")
	cli(t, "", "auditor", "--dir", dir, "--once", "--linger", "-1s").want(t, exitUsage, "--linger -1s")
	data := t.TempDir()
	startUp(t, data, "--auditor-read-grace", "1s", "--auditor-orphan-grace", "1m").end(t)
	// The flag's hour would do; the catalog's minute is what counts.
	cli(t, "", "auditor", "--dir", data, "--once", "--budget-bytes", "1MiB").want(t, exitOK, "orphan grace of 1m0s", "--budget-bytes 5MiB", "orphan grace of 4m16s")
	if r := cli(t, "", "auditor", "--dir", data, "--once", "--budget-bytes", "5MiB"); r.code != exitOK || strings.Contains(r.err, "give up") {
		t.Errorf("%+v", r)
	}
}
