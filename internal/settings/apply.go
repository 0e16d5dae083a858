package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Kind of a place that a value came from.
type Kind string

// The kinds, by precedence.
const (
	FromFlag    Kind = "flag"
	FromEnv     Kind = "env"
	FromFile    Kind = "file"
	FromDefault Kind = "default"
)

// Source is where a flag's value came from.
type Source struct {
	Kind Kind
	// Where is the variable's name, or file:line; empty for the others.
	Where string
}

func (s Source) String() string {
	switch s.Kind {
	case FromEnv:
		return "env " + s.Where
	case FromFile:
		return s.Where
	default:
		return string(s.Kind)
	}
}

// Command is one command with its flags, those of its parents included.
type Command struct {
	// Path is its name as it is typed: "writer", "topology set".
	Path  string
	Flags *pflag.FlagSet
}

// Set is all commands that share the environment and a file. Apply may be called once.
type Set struct {
	Commands []Command
	// Spare are the same commands made anew, to try values on that are not in force.
	Spare []Command
	// Running are the commands whose values count. One name may take different texts in
	// different commands (--shards of up and of writer): what is common is refused if one of
	// these refuses it, or if no command takes it.
	Running []string
	// Ours are flags that are no settings: help, version, and config itself.
	Ours []string
	// Others are variables with our prefix that are no flags.
	Others []string

	sources  map[string]map[string]Source // by path, then flag
	sections []string                     // of the file
}

// Apply gives every flag of every command that was not given on the command line its value
// from the environment, else from the file (path; empty: none). It returns all faults at
// once; flags without a fault are set nevertheless.
func (s *Set) Apply(path string, environ []string) error {
	s.sources = map[string]map[string]Source{}
	for _, c := range s.Commands {
		s.sources[c.Path] = map[string]Source{}
		c.Flags.VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				s.sources[c.Path][f.Name] = Source{Kind: FromFlag}
			}
		})
	}
	vars := variables(environ)
	errs := s.strangers(vars)
	for _, name := range sortedKeys(vars) {
		errs = append(errs, s.common(s.Commands, func(c Command) (bool, error) { return s.fromVariable(c, name, vars[name]) })...)
	}
	if path != "" {
		content, err := read(path)
		errs = append(errs, err)
		errs = append(errs, s.fromFile(content)...)
	}
	return errors.Join(once(errs)...)
}

// Source says where the value of a command's flag came from.
func (s *Set) Source(path, flag string) Source {
	src := s.sources[path][flag]
	src.Kind = cmp.Or(src.Kind, FromDefault)
	return src
}

// HasSection says whether the file has something for that command alone.
func (s *Set) HasSection(command string) bool { return slices.Contains(s.sections, command) }

// common offers a value to commands. It returns what those refuse that are running, or
// the first refusal if no command takes it; known says that one has such a flag.
func (s *Set) common(to []Command, offer func(c Command) (known bool, err error)) []error {
	var running, others []error
	taken := false
	for _, c := range to {
		known, err := offer(c)
		switch {
		case known && err == nil:
			taken = true
		case err != nil && slices.Contains(s.Running, c.Path):
			running = append(running, err)
		case err != nil:
			others = append(others, err)
		}
	}
	if len(running) == 0 && !taken && len(others) > 0 {
		return others[:1]
	}
	return running
}

// fromVariable sets a command's flag from its variable.
func (s *Set) fromVariable(c Command, name, text string) (known bool, err error) {
	var f *pflag.Flag
	c.Flags.VisitAll(func(have *pflag.Flag) {
		if Variable(have.Name) == name && !slices.Contains(s.Ours, have.Name) {
			f = have
		}
	})
	if f == nil || s.decided(c, f) {
		return f != nil, nil
	}
	texts := []string{text}
	if many(f) { // URLs have no line breaks, and commas of their own
		texts = slices.DeleteFunc(strings.Split(text, "\n"), func(t string) bool { return strings.TrimSpace(t) == "" })
	}
	for _, text := range texts {
		if err := set(c.Flags, f.Name, strings.TrimSpace(text)); err != nil {
			return true, fmt.Errorf("environment %s: %w", name, err)
		}
	}
	s.sources[c.Path][f.Name] = Source{FromEnv, name}
	return true, nil
}

// decided says that a place of higher precedence gave the flag its value.
func (s *Set) decided(c Command, f *pflag.Flag) bool {
	_, is := s.sources[c.Path][f.Name]
	return is
}

// once leaves out what was said: a flag of many commands has the same fault in each.
func once(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || seen[err.Error()] {
			return true
		}
		seen[err.Error()] = true
		return false
	})
}
