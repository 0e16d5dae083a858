package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a settings file: it is a few kilobytes.
const maxFile = 1 << 20

// entry is one key of a file with its values; more than one for a list.
type entry struct {
	key    string
	at     place
	values []value
	list   bool
	// section is what a mapping holds; nil for a value.
	section []entry
}

type value struct {
	text string
	at   place
}

// place is where something stands: file:line.
type place struct {
	path string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.path, p.line) }

// read parses a file. Its errors name the line.
func read(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the settings file: %w; look at --config and STRANDLINE_CONFIG", err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("the settings file: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("the settings file %s has more than 1 MiB; is it the right one?", path)
	}
	return parse(path, text)
}

func parse(path string, text []byte) ([]entry, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 { // empty, or comments only
		return nil, nil
	}
	if n := documents(text); n > 1 {
		return nil, fmt.Errorf("%s holds %d YAML documents; give one", path, n)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: the file has to be a mapping of flag names to values", path, root.Line)
	}
	return entries(path, root)
}

// documents counts them, two at most.
func documents(text []byte) int {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil || n == 2 {
			return n
		}
	}
}

// entries are a mapping's, with all that is wrong with them.
func entries(path string, m *yaml.Node) ([]entry, error) {
	var out []entry
	var errs []error
	seen := map[string]place{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, val := m.Content[i], resolved(m.Content[i+1])
		e := entry{key: key.Value, at: place{path, key.Line}}
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Tag == "!!null" {
			errs = append(errs, fmt.Errorf("%v: a key has to be a flag's name or a command's", e.at))
			continue
		}
		if before, twice := seen[e.key]; twice {
			errs = append(errs, fmt.Errorf("%v: %s stands here a second time, first in line %d; leave one", e.at, e.key, before.line))
			continue
		}
		seen[e.key] = e.at
		if err := e.fill(path, val); err != nil {
			errs = append(errs, err)
		}
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}

// fill takes the value of a key.
func (e *entry) fill(path string, val *yaml.Node) (err error) {
	switch val.Kind {
	case yaml.MappingNode:
		e.section, err = entries(path, val)
		if e.section == nil {
			e.section = []entry{}
		}
		return err
	case yaml.SequenceNode:
		e.list = true
		for _, item := range val.Content {
			item = resolved(item)
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return fmt.Errorf("%s:%d: %s: an item of the list has to be a plain value", path, item.Line, e.key)
			}
			e.values = append(e.values, value{item.Value, place{path, item.Line}})
		}
		return nil
	default:
		if val.Tag == "!!null" {
			return fmt.Errorf("%s:%d: %s has no value; give one, or take the line away", path, e.at.line, e.key)
		}
		e.values = []value{{val.Value, place{path, val.Line}}}
		return nil
	}
}

// resolved is what an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
