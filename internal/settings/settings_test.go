package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// set is two commands, one of them with a subcommand, as cmd hands them in.
func commands() *Set {
	make := func() []Command {
		writer := pflag.NewFlagSet("writer", pflag.ContinueOnError)
		writer.String("shards", "", "")
		writer.Duration("age", 10*time.Second, "")
		writer.Bool("steal", false, "")
		writer.StringArray("store", nil, "")
		writer.String("config", "", "")
		up := pflag.NewFlagSet("up", pflag.ContinueOnError)
		up.Uint32("shards", 0, "")
		up.Duration("age", 10*time.Second, "")
		up.StringArray("store", nil, "")
		sub := pflag.NewFlagSet("set", pflag.ContinueOnError)
		sub.String("retention", "", "")
		show := pflag.NewFlagSet("show", pflag.ContinueOnError)
		show.String("retention", "", "")
		return []Command{{"writer", writer}, {"up", up}, {"topology set", sub}, {"topology show", show}}
	}
	return &Set{Commands: make(), Spare: make(), Ours: []string{"config"}, Others: []string{"STRANDLINE_TOKEN"}, Running: []string{"writer"}}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *Set) value(path, flag string) string {
	for _, c := range s.Commands {
		if c.Path == path {
			return c.Flags.Lookup(flag).Value.String()
		}
	}
	return "no such command"
}

// TestPrecedence: flag, then variable, then the command's section, then what is common.
func TestPrecedence(t *testing.T) {
	path := file(t, "age: 1s\nsteal: true\nstore:\n  - a\n  - b\nwriter:\n  age: 2s\ntopology:\n  retention: all\n  set:\n    retention: some\n")
	for _, c := range []struct {
		name       string
		flag, env  string
		want, from string
	}{
		{"file", "", "", "2s", path + ":7"},
		{"environment", "", "3s", "3s", "env STRANDLINE_AGE"},
		{"flag", "4s", "3s", "4s", "flag"},
	} {
		s := commands()
		if c.flag != "" {
			if err := s.Commands[0].Flags.Set("age", c.flag); err != nil {
				t.Fatal(err)
			}
		}
		var environ []string
		if c.env != "" {
			environ = []string{"STRANDLINE_AGE=" + c.env, "PATH=/bin", "STRANDLINE_TOKEN=x", "STRANDLINE_TEST_X=1"}
		}
		if err := s.Apply(path, environ); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, from := s.value("writer", "age"), s.Source("writer", "age").String(); got != c.want || from != c.from {
			t.Errorf("%s: %s from %s", c.name, got, from)
		}
		if got := s.value("writer", "store"); got != `[a,b]` {
			t.Errorf("%s: a list is %s", c.name, got)
		}
		if c.env == "" && s.value("up", "age") != "1s" {
			t.Errorf("%s: what is common does not reach up: %s", c.name, s.value("up", "age"))
		}
		if set, show := s.value("topology set", "retention"), s.value("topology show", "retention"); set != "some" || show != "all" {
			t.Errorf("%s: sections in sections: %s, %s", c.name, set, show)
		}
		if s.Source("writer", "shards") != (Source{Kind: FromDefault}) || !s.HasSection("writer") || s.HasSection("up") {
			t.Errorf("%s: sources of what is not given", c.name)
		}
	}
}

// TestLinesOfAList: one variable holds several stores, a line each.
func TestLinesOfAList(t *testing.T) {
	s := commands()
	if err := s.Apply("", []string{"STRANDLINE_STORE=standard=a,b\n\n express=c\n"}); err != nil || s.value("writer", "store") != `["standard=a,b",express=c]` {
		t.Errorf("%v: %s", err, s.value("writer", "store"))
	}
}

// TestFaults: each is told with its place, all of them at once, and only those.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		text, env string
		want      []string // in order, one a line
	}{
		"unknown key":          {"agee: 1s\n", "", []string{"s.yaml:1: agee: no command has such a flag; did you mean age?"}},
		"nothing is near":      {"whatever: 1s\n", "", []string{"s.yaml:1: whatever: no command has such a flag; strandline config lists what there is"}},
		"unknown section":      {"writr:\n  age: 1s\n", "", []string{"s.yaml:1: writr: no command, and no flag that takes a mapping, is called so; did you mean writer?"}},
		"unknown in a section": {"writer:\n  age: 1s\n  stael: true\n", "", []string{"s.yaml:3: stael: strandline writer has no such flag; did you mean steal?"}},
		"of another command":   {"up:\n  steal: true\n", "", []string{"s.yaml:2: steal: strandline up has no such flag"}},
		"unknown subcommand":   {"topology:\n  sett:\n    retention: x\n", "", []string{"s.yaml:2: sett: there is no command strandline topology sett"}},
		"twice":                {"age: 1s\nsteal: true\nage: 2s\n", "", []string{"s.yaml:3: age stands here a second time, first in line 1"}},
		"a list for one":       {"\nage: [1s, 2s]\n", "", []string{"s.yaml:2: age takes one value, not a list"}},
		"a mapping for a flag": {"age: {a: 1}\n", "", []string{"s.yaml:1: age: no command"}},
		"a list of lists":      {"store: [[a]]\n", "", []string{"s.yaml:1: store: an item of the list"}},
		"no value":             {"age:\n", "", []string{"s.yaml:1: age has no value"}},
		"no unit":              {"age: 10\n", "", []string{`s.yaml:1: age: "10": give a duration like 10m`}},
		"no bool":              {"steal: maybe\n", "", []string{`s.yaml:1: steal: "maybe": give true or false`}},
		"under a flag":         {"age: wrong\n", "STRANDLINE_AGE=1s", []string{`s.yaml:1: age: "wrong"`}},
		"a merge":              {"writer: &w\n  age: 1s\nup:\n  <<: *w\n", "", []string{"s.yaml:4: a key has to be"}},
		"not a mapping":        {"- age\n", "", []string{"s.yaml:1: the file has to be a mapping"}},
		"two documents":        {"age: 1s\n---\nage: 2s\n", "", []string{"holds 2 YAML documents"}},
		"no YAML":              {"age: 'x\n", "", []string{"s.yaml: yaml: "}},
		"not a setting":        {"config: x\n", "", []string{"s.yaml:1: config: no command"}},
		"unknown variable":     {"", "STRANDLINE_STOER=x", []string{"environment STRANDLINE_STOER: no command has such a flag; did you mean STRANDLINE_STORE?"}},
		"a service link":       {"", "STRANDLINE_PORT=tcp://10.0.0.1:8420", []string{"STRANDLINE_PORT: no command has such a flag; Kubernetes sets it"}},
		"no service link":      {"", "STRANDLINE_PORT=8420", []string{"STRANDLINE_PORT: no command has such a flag; did you mean"}},
		"links of a service": {
			"", "STRANDLINE_SERVICE_HOST=10.0.0.1\nSTRANDLINE_X_SERVICE_PORT_HTTP=1\nSTRANDLINE_X_PORT_1_TCP_ADDR=10.0.0.1",
			[]string{"HOST: no command has such a flag; Kubernetes", "enableServiceLinks: false", "enableServiceLinks: false"},
		},
		"a variable's kind":      {"", "STRANDLINE_STEAL=maybe", []string{`environment STRANDLINE_STEAL: "maybe": give true or false`}},
		"another's text":         {"shards: 0-3\n", "", nil}, // of writer; to up it is none, and up does not run
		"another's variable":     {"", "STRANDLINE_SHARDS=0-3", nil},
		"an alias":               {"writer:\n  age: &a 1s\nup:\n  age: *a\n", "", nil},
		"nothing":                {"# only words\n", "", nil},
		"all faults, both kinds": {"age: x\nsteal: y\nzzz: 1\n", "STRANDLINE_QQQQQQQ=1", []string{"QQQQQQQ", "s.yaml:1", "s.yaml:2", "s.yaml:3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := commands()
			err := s.Apply(file(t, c.text), strings.Split(c.env, "\n"))
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(c.want) {
				t.Fatalf("%d faults: %v", len(lines), err)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("%q does not say %q", lines[i], want)
				}
			}
		})
	}
	if err := commands().Apply(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a missing file: %v", err)
	}
	if err := commands().Apply(file(t, strings.Repeat("#", maxFile+1)), nil); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a large file: %v", err)
	}
	s := commands()
	s.Running = []string{"up"}
	if err := s.Apply(file(t, "shards: 0-3\n"), nil); err == nil || !strings.Contains(err.Error(), "whole number") {
		t.Errorf("what the running command refuses: %v", err)
	}
}

// TestAFaultLeavesTheDefault: or its zero would be complained about, too.
func TestAFaultLeavesTheDefault(t *testing.T) {
	s := commands()
	if err := s.Apply("", []string{"STRANDLINE_AGE=5"}); err == nil || s.value("writer", "age") != "10s" {
		t.Errorf("%v: %s", err, s.value("writer", "age"))
	}
}

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://me:hush@h1,h2/db?sslmode=require":     "postgres://me:set@h1,h2/db?sslmode=require",
		"postgres://me:hu,sh@h/db":                        "postgres://me:set@h/db",
		"postgres://me:hu@sh@h/db":                        "postgres://me:set@h/db",
		"postgres://h/db?password=hush&x=1":               "postgres://h/db?password=set&x=1",
		"postgres://me@h1,h2/db":                          "postgres://me@h1,h2/db",
		"postgresql://me@h/db?password=hush":              "postgresql://me@h/db?password=set",
		"postgres://hu%3Ash@h/db":                         "postgres://set@h/db",
		"postgres://:hush@h/db":                           "postgres://:set@h/db",
		"https://hush@h/x":                                "https://set@h/x",
		"host=h password=hush dbname=d":                   "host=h password=set dbname=d",
		"host=h password = 'hu sh' dbname=d":              "host=h password=set dbname=d",
		"standard=s3://k:hush@b/p?region=x,minio://u@h/b": "standard=s3://k:set@b/p?region=x,minio://set@h/b",
		"s3://b?endpoint=http://x&secret=hush":            "s3://b?endpoint=http://x&secret=set",
		"sqlite:///data/catalog.db":                       "sqlite:///data/catalog.db",
		"minio://me:hush@h:port/b":                        "minio://(set, and no URL)",
		"127.0.0.1:8420":                                  "127.0.0.1:8420",
		"":                                                "",
	} {
		if got := Shown(text); got != want || strings.Contains(got, "hu") && strings.Contains(text, "hu") {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestMargins(t *testing.T) {
	m := Margins{10 * time.Minute, time.Hour}
	if m.Validate() != nil || m.PlanTTL() != 5*time.Minute || m.FooterLife() > m.PlanTTL() || m.PlanTTL() >= m.ReadGrace || m.JobDeadline() != 30*time.Minute {
		t.Errorf("%+v: %v", m, m.Validate())
	}
	for _, m := range []Margins{{time.Second - 1, time.Hour}, {time.Second, 5*time.Second - 1}, {time.Hour, time.Hour - 1}} {
		if m.Validate() == nil {
			t.Errorf("%+v is taken", m)
		}
	}
	if err := (Margins{0, 0}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not all faults at once: %v", err)
	}
}

// TestBudget: what the refusal says would do, does.
func TestBudget(t *testing.T) {
	m := Margins{10 * time.Second, time.Minute} // 30 s for 128 MiB
	if m.CheckBudget(0) != nil || m.CheckBudget(5<<20) != nil {
		t.Errorf("enough is refused: %v", m.CheckBudget(5<<20))
	}
	err := m.CheckBudget(4 << 20)
	if err == nil || !strings.Contains(err.Error(), "--budget-bytes 5MiB") || !strings.Contains(err.Error(), "orphan grace of 1m4s") {
		t.Fatalf("%v", err)
	}
	longer := Margins{10 * time.Second, 64 * time.Second}
	if err := longer.CheckBudget(4 << 20); err != nil {
		t.Errorf("the orphan grace that was proposed: %v", err)
	}
}

func TestNearest(t *testing.T) {
	for pair, want := range map[[2]string]int{{"ab", "ba"}: 1, {"", "abc"}: 3, {"abc", "abc"}: 0, {"shards", "shrads"}: 1, {"steal", "stel"}: 1, {"ack", "acks"}: 1, {"a", "b"}: 1} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d edits, want %d", pair, got, want)
		}
	}
	known := []string{"segment-age", "segment-size", "steal", "http"}
	for name, want := range map[string]string{"segment-sise": "segment-size", "segmentage": "segment-age", "stela": "steal", "htttp": "http", "zz": "", "completely-else": ""} {
		if got, ok := nearest(name, known); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t", name, got, ok)
		}
	}
}
