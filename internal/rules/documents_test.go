package rules

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposeParses holds the compose file to what it must say: pinned images,
// health checks, and commands that the binary has.
func TestComposeParses(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image       string
			Build       string
			Command     []string
			Environment map[string]string
			Healthcheck map[string]any
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
			Ports       []string
			Volumes     []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(read(t, "docker-compose.yml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) < 2 {
		t.Fatalf("%d services", len(file.Services))
	}
	for name, s := range file.Services {
		if (s.Image == "") == (s.Build == "") {
			t.Errorf("%s: give image or build", name)
		}
		if s.Image != "" && !regexp.MustCompile(`:[^:]*\d`).MatchString(s.Image) {
			t.Errorf("%s: image %s is not pinned to a version", name, s.Image)
		}
		for dependency := range s.DependsOn {
			if _, ok := file.Services[dependency]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, dependency)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is published beyond loopback, without authentication", name, p)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s: volume %s is not declared", name, volume)
			}
		}
	}
	ours := 0
	for name, s := range file.Services {
		if s.Build == "" {
			continue
		}
		ours++
		if len(s.Command) == 0 || !slices.Contains(subcommands(t), s.Command[0]) {
			t.Errorf("%s runs %v, which is no subcommand", name, s.Command)
			continue
		}
		for _, arg := range s.Command[1:] {
			if flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "="); !hasFlag(t, flag) {
				t.Errorf("%s gives --%s, which no command has", name, flag)
			}
		}
		for variable := range s.Environment {
			if rest, ok := strings.CutPrefix(variable, "STRANDLINE_"); ok && !hasFlag(t, strings.ToLower(strings.ReplaceAll(rest, "_", "-"))) {
				t.Errorf("%s sets %s, which is no flag", name, variable)
			}
		}
		if len(s.Healthcheck) == 0 {
			t.Errorf("%s has no health check", name)
		}
	}
	if ours != 4 {
		t.Errorf("%d services of ours, want an auditor, two writers and a reader", ours)
	}
}

// TestREADMECommands: every command line in the README names a subcommand and
// flags that exist, and every make target stands in the Makefile.
func TestREADMECommands(t *testing.T) {
	text := string(read(t, "README.md"))
	known := subcommands(t)
	lines := regexp.MustCompile(`(?m)(?:go run \./cmd/strandline|\| strandline) ([a-z]+)`).FindAllStringSubmatch(text, -1)
	if len(lines) < 4 {
		t.Fatalf("only %d command lines found in the README", len(lines))
	}
	for _, m := range lines {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the README runs %q, which is no subcommand", m[1])
		}
	}
	for _, m := range regexp.MustCompile("--([a-z][a-z-]+)").FindAllStringSubmatch(text, -1) {
		if m[1] != "build" && !hasFlag(t, m[1]) { // of docker compose
			t.Errorf("the README names --%s, which no command has", m[1])
		}
	}
	makefile := string(read(t, "Makefile"))
	for _, m := range regexp.MustCompile("make ([a-z0-9-]+)").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("the README runs make %s, which is no target", m[1])
		}
	}
}

// TestTextsNameCommands: a command that an error, a help text or a comment tells people to
// run is one that there is, and so is one that a page tells of.
func TestTextsNameCommands(t *testing.T) {
	known := subcommands(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimPrefix(files[i], root+"/")
	}
	named := 0
	for _, file := range append(files, goFiles(t)...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile("(?:`|run |start one with )strandline ([a-z]+)").FindAllStringSubmatch(string(read(t, file)), -1) {
			named++
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s names strandline %s, which is no subcommand", file, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d commands found in texts", named)
	}
}

// TestArchitectureNamesFiles: a file that docs/architecture.md names exists.
func TestArchitectureNamesFiles(t *testing.T) {
	text := string(read(t, "docs/architecture.md"))
	room := ""
	for _, m := range regexp.MustCompile("`([a-z0-9/]+\\.go|[a-z0-9]+(?:/[a-z0-9]+)*)`").FindAllStringSubmatch(text, -1) {
		name := m[1]
		if !strings.HasSuffix(name, ".go") {
			if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.IsDir() {
				room = name
			}
			continue
		}
		_, asRoom := os.Stat(filepath.Join(root, room, name))
		_, asPath := os.Stat(filepath.Join(root, name))
		if asRoom != nil && asPath != nil {
			t.Errorf("docs/architecture.md names %s in %s, which does not exist", name, room)
		}
	}
}

// TestInvariantsNameTests: a test that docs/invariants.md names exists, or begins so.
func TestInvariantsNameTests(t *testing.T) {
	var all strings.Builder
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			all.Write(read(t, file))
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(read(t, "docs/invariants.md")), -1)
	for _, m := range named {
		if !strings.Contains(all.String(), "\nfunc "+m[1]) {
			t.Errorf("docs/invariants.md names %s, which is no test", m[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("only %d tests found in docs/invariants.md", len(named))
	}
}

// TestPackageDocsNameFiles: a file that a package's comment names stands beside it.
func TestPackageDocsNameFiles(t *testing.T) {
	named := 0
	for _, doc := range goFiles(t) {
		if path.Base(doc) != "doc.go" {
			continue
		}
		for _, name := range regexp.MustCompile(`[a-z0-9_]+\.go\b`).FindAllString(string(read(t, doc)), -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, path.Dir(doc), name)); err != nil {
				t.Errorf("%s names %s: %v", doc, name, err)
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d files found in the packages' comments", named)
	}
}

// TestPackageDocsListFiles: a package's comment that lists files misses none, and one of a
// package of more than three does list them. "The other files" stands for the rest.
func TestPackageDocsListFiles(t *testing.T) {
	beside := map[string][]string{}
	for _, file := range goFiles(t) {
		if name := path.Base(file); name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
			beside[path.Dir(file)] = append(beside[path.Dir(file)], name)
		}
	}
	held := 0
	for dir, names := range beside {
		doc := string(read(t, path.Join(dir, "doc.go")))
		listed := regexp.MustCompile(`[a-z0-9_*]+\.go\b`).FindAllString(doc, -1)
		if len(names) <= 3 && len(listed) == 0 || strings.Contains(doc, "he other files ") {
			continue
		}
		held++
		for _, name := range names {
			if !slices.ContainsFunc(listed, func(l string) bool { ok, _ := path.Match(l, name); return ok }) {
				t.Errorf("%s/doc.go does not list %s", dir, name)
			}
		}
	}
	if held < 40 {
		t.Errorf("only %d lists of files found", held)
	}
}

// TestCIRunsTheREADMEsTests: CI and the README give one command.
func TestCIRunsTheREADMEsTests(t *testing.T) {
	if !strings.Contains(string(read(t, ".ci/run")), "make test") || !strings.Contains(string(read(t, "README.md")), "make test") {
		t.Error("make test is not what both .ci/run and the README run")
	}
}

// subcommands are the names in the binary's source: each file declares its own.
func subcommands(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`\bUse:\s+"([a-z]+)`).FindAllStringSubmatch(commandSource(t), -1) {
		names = append(names, m[1])
	}
	if len(names) < 8 {
		t.Fatalf("found only the subcommands %v", names)
	}
	return names
}

func hasFlag(t *testing.T, name string) bool {
	t.Helper()
	return regexp.MustCompile(`Var\([^\n]*"` + regexp.QuoteMeta(name) + `"`).MatchString(commandSource(t))
}

func commandSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, file := range goFiles(t) {
		if strings.HasPrefix(file, "cmd/strandline/") && !strings.HasSuffix(file, "_test.go") {
			all.Write(read(t, file))
		}
	}
	return all.String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
