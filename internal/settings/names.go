package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// lookup is a command's flag if it is a setting.
func (s *Set) lookup(c Command, name string) *pflag.Flag {
	if slices.Contains(s.Ours, name) {
		return nil
	}
	return c.Flags.Lookup(name)
}

// below are the commands of a path: itself and its subcommands.
func (s *Set) below(path string) []Command {
	var out []Command
	for _, c := range s.Commands {
		if c.Path == path || strings.HasPrefix(c.Path, path+" ") {
			out = append(out, c)
		}
	}
	return out
}

func (s *Set) flagsOf(c Command) []string {
	var out []string
	c.Flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(s.Ours, f.Name) {
			out = append(out, f.Name)
		}
	})
	return out
}

// names are all flags there are.
func (s *Set) names() []string {
	all := map[string]bool{}
	for _, c := range s.Commands {
		for _, name := range s.flagsOf(c) {
			all[name] = true
		}
	}
	return sortedKeys(all)
}

// tops are the first words of all commands.
func (s *Set) tops() []string {
	all := map[string]bool{}
	for _, c := range s.Commands {
		first, _, _ := strings.Cut(c.Path, " ")
		all[first] = true
	}
	return sortedKeys(all)
}

func (s *Set) unknown(e *entry, known []string, why string) error {
	return fmt.Errorf("%v: %s: %s%s", e.at, e.key, why, meant(e.key, known))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
