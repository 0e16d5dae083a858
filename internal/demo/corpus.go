package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is one package's directory: a stream.
type pkg struct {
	name  string   // path below the source root
	files []string // of its Go files, sorted
	// batches are filled by the load: where its rows stand.
	batches []batch
	rows    int
	bytes   int64
	// from is the index of the first row that must still be there; deleted packages
	// have none.
	from    int
	deleted bool
}

// batch is one append call: rows from this index on have seqs from first on.
type batch struct {
	index int
	first uint64
}

// seqOf is the seq of a row by its index in the package.
func (p *pkg) seqOf(index int) uint64 {
	i, exact := slices.BinarySearchFunc(p.batches, index, func(b batch, at int) int { return b.index - at })
	if !exact {
		i--
	}
	return p.batches[i].first + uint64(index-p.batches[i].index)
}

// corpus finds every directory with Go files below root.
func corpus(root string) ([]*pkg, error) {
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		name := path.Join("src", filepath.ToSlash(rel))
		if byDir[name] == nil {
			byDir[name] = &pkg{name: name}
		}
		byDir[name].files = append(byDir[name].files, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walk %s: %w", root, err)
	}
	pkgs := make([]*pkg, 0, len(byDir))
	for _, p := range byDir {
		slices.Sort(p.files)
		pkgs = append(pkgs, p)
	}
	slices.SortFunc(pkgs, func(a, b *pkg) int { return strings.Compare(a.name, b.name) })
	return pkgs, nil
}

// lines yields a package's rows: every line of every file, without its end. A file
// that does not end in a newline, or is empty, still has a last line: so the
// rows determine the bytes.
func (p *pkg) lines() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, file := range p.files {
			data, err := os.ReadFile(file)
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.SplitSeq(data, []byte{'\n'}) {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}
