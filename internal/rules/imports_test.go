package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/strandline/strandline"

// root is the repository, seen from this package.
const root = "../.."

// mayImport is the table of docs/architecture.md: a room, and the rooms that its
// code (tests apart) may import. A room not listed may import nothing of ours but its own
// sub-packages. Imports point left in the flow, never back.
var mayImport = map[string][]string{
	"segment":   {},
	"client":    {"segment"},
	"objstore":  {},
	"catalog":   {"segment"},
	"absorb":    {"segment", "objstore", "catalog"},
	"localtier": {"segment", "objstore", "catalog", "absorb"},
	"settle":    {"segment", "objstore", "catalog"},
	"probe":     {"segment", "objstore", "catalog"},
	"orphan":    {"segment", "objstore", "catalog"},
	"reap":      {"segment", "objstore", "catalog", "probe", "orphan"},
	"coldload":  {"segment", "objstore", "catalog"},
	"auditor":   {"segment", "objstore", "catalog", "absorb", "settle", "probe", "reap", "orphan"},
	"check":     {"segment", "objstore", "catalog"},
	"cmd":       {"*"},
	"internal":  {"*"},
}

// narrower are sub-packages with less right than their room.
var narrower = map[string][]string{
	"localtier/wal": {"segment"},
}

func TestImportTable(t *testing.T) {
	files := goFiles(t)
	if len(files) < 50 {
		t.Fatalf("only %d Go files found under %s: the test looks in the wrong place", len(files), root)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := path.Dir(file)
		room, _, _ := strings.Cut(dir, "/")
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("%s: room %q is not in the import table", file, room)
			continue
		}
		if n, ok := narrower[dir]; ok {
			allowed = n
		}
		for _, imported := range importsOf(t, file) {
			target, ours := strings.CutPrefix(imported, module+"/")
			if !ours || slices.Contains(allowed, "*") || testHelper(dir, target) {
				continue
			}
			targetRoom, _, _ := strings.Cut(target, "/")
			if targetRoom == room && narrower[dir] == nil {
				continue
			}
			if !slices.Contains(allowed, targetRoom) {
				t.Errorf("%s imports %s: %s may import only %v", file, target, dir, allowed)
			}
		}
	}
}

// TestArchitectureHasTheTable: docs/architecture.md says of every room what mayImport
// says.
func TestArchitectureHasTheTable(t *testing.T) {
	written := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)/[a-z/]*` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(string(read(t, "docs/architecture.md")), -1) {
		var rooms []string
		switch m[2] {
		case "–":
		case "all":
			rooms = []string{"*"}
		default:
			rooms = strings.Split(m[2], ", ")
		}
		written[m[1]] = true
		if !slices.Equal(rooms, mayImport[m[1]]) {
			t.Errorf("docs/architecture.md lets %s import %v, the test %v", m[1], rooms, mayImport[m[1]])
		}
	}
	for room := range mayImport {
		if !written[room] {
			t.Errorf("docs/architecture.md has no row for %s/", room)
		}
	}
}

// testHelper lets packages that exist for tests (their name ends in "test") use
// internal helpers.
func testHelper(dir, target string) bool {
	return strings.HasSuffix(dir, "test") && strings.HasPrefix(target, "internal/")
}

func TestEveryPackageHasDoc(t *testing.T) {
	docs := map[string]bool{}
	for _, file := range goFiles(t) {
		dir := path.Dir(file)
		if _, seen := docs[dir]; !seen {
			docs[dir] = false
		}
		if path.Base(file) != "doc.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		docs[dir] = wordsOf(f.Doc) >= 15
	}
	for dir, ok := range docs {
		if !ok {
			t.Errorf("%s: no doc.go with a package comment that says what the package is for", dir)
		}
	}
}

func wordsOf(doc *ast.CommentGroup) int {
	if doc == nil {
		return 0
	}
	return len(strings.Fields(doc.Text()))
}

// TestSQLStaysInCatalog holds "nothing outside catalog/ contains SQL", but for what
// administers a test's server and knows no table.
func TestSQLStaysInCatalog(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasPrefix(file, "catalog/") || strings.HasPrefix(file, "internal/pgserver/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, imported := range importsOf(t, file) {
			if imported == "database/sql" || strings.HasPrefix(imported, "github.com/jackc/pgx/") {
				t.Errorf("%s imports %s: all SQL stands in catalog/", file, imported)
			}
		}
	}
}

func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (p == "tools" || p == "bin" || p == "demo" || p == "testdata" || (strings.HasPrefix(d.Name(), ".") && p != ".")) {
			return fs.SkipDir
		}
		if d.IsDir() && p != "." {
			if _, err := os.Stat(filepath.Join(root, p, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own: what it imports is no dependency of ours
			}
		}
		if strings.HasSuffix(p, ".go") {
			files = append(files, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}
