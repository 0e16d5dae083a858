package crashpoints_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// document lists the crash points for who reads; this file holds it to the code.
const document = "docs/crashpoints.md"

// point is a row of the document: where the cut falls, and the tests of it.
type point struct {
	name  string
	code  []string // as `settle.mover.commit`, or a verb of the catalog's
	tests []string // as `settle.TestCrashTable`
}

// points reads the document's tables.
func points(t *testing.T) (out []point) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (all []string) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
		return all
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "|") || strings.Contains(line, "---") || strings.HasPrefix(line, "| crash") {
			continue
		}
		last := len(cells) - 1
		out = append(out, point{strings.TrimSpace(cells[0]), names(cells[last-1]), names(cells[last])})
	}
	return out
}

// TestEveryPointHasItsTest: each row of the document names tests that exist and code that
// exists, so neither can go without the row being seen to.
func TestEveryPointHasItsTest(t *testing.T) {
	tests, code := declared(t)
	all := points(t)
	for _, p := range all {
		if len(p.tests) == 0 || len(p.code) == 0 {
			t.Errorf("%q: no test, or no place in the code", p.name)
		}
		for _, name := range p.tests {
			if !tests[name] {
				t.Errorf("%q: %s is no test: name the one that has this crash point now, or write it", p.name, name)
			}
		}
		for _, name := range p.code {
			if !code[name] {
				t.Errorf("%q: %s is not declared: name the function that the cut falls into now", p.name, name)
			}
		}
	}
	const seed, more = 12, 25
	if len(all) != seed+more {
		t.Errorf("%d crash points in %s, want the %d of the first table and %d of the second", len(all), document, seed, more)
	}
}

// TestEveryTestHasItsPoint: a test of this package stands in the document.
func TestEveryTestHasItsPoint(t *testing.T) {
	tests, _ := declared(t)
	var listed []string
	for _, p := range points(t) {
		listed = append(listed, p.tests...)
	}
	for name := range tests {
		own := strings.HasPrefix(name, "internal/crashpoints.Test")
		if own && !strings.HasSuffix(name, ".TestMain") && !strings.Contains(name, ".TestEvery") && !slices.Contains(listed, name) {
			t.Errorf("%s is in no row of %s", name, document)
		}
	}
}

// declared are the repository's tests, and its functions, methods and constants elsewhere,
// by directory.
func declared(t *testing.T) (tests, code map[string]bool) {
	t.Helper()
	tests, code = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		into := code
		if strings.HasSuffix(path, "_test.go") {
			into = tests
		}
		for _, decl := range file.Decls {
			for _, name := range namesOf(decl) {
				into[fmt.Sprintf("%s.%s", filepath.ToSlash(dir), name)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const least = 500
	if len(tests) < least || len(code) < least {
		t.Fatalf("%d tests and %d other names under %s: this looks in the wrong place", len(tests), len(code), root)
	}
	return tests, code
}

// namesOf a declaration: a method's with its receiver's type before it.
func namesOf(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		recv := d.Recv.List[0].Type
		if star, ok := recv.(*ast.StarExpr); ok {
			recv = star.X
		}
		if id, ok := recv.(*ast.Ident); ok {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, id := range v.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}
