package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// fromFile applies a file's sections, then what is common.
func (s *Set) fromFile(content []entry) []error {
	var errs []error
	for i := range content {
		if content[i].section != nil {
			s.sections = append(s.sections, content[i].key)
			errs = append(errs, s.section(&content[i], content[i].key)...)
		}
	}
	for i := range content {
		e := &content[i]
		if e.section != nil {
			continue
		}
		errs = append(errs, s.share(e, s.Commands, "no command has such a flag")...)
	}
	return errs
}

// section applies what stands below a command's name: what stands deeper first, for it is
// the more special.
func (s *Set) section(e *entry, path string) []error {
	below := s.below(path)
	if len(below) == 0 {
		return []error{s.unknown(e, append(s.names(), s.tops()...), "no command, and no flag that takes a mapping, is called so")}
	}
	var errs []error
	for i := range e.section {
		if in := &e.section[i]; in.section != nil {
			if deeper := path + " " + in.key; len(s.below(deeper)) > 0 {
				errs = append(errs, s.section(in, deeper)...)
			} else {
				errs = append(errs, fmt.Errorf("%v: %s: there is no command strandline %s", in.at, in.key, deeper))
			}
		}
	}
	why := "strandline " + path + " has no such flag"
	for i := range e.section {
		if in := &e.section[i]; in.section == nil {
			errs = append(errs, s.share(in, below, why)...)
		}
	}
	return errs
}

// share offers an entry to commands, one of which has to know it.
func (s *Set) share(e *entry, to []Command, why string) []error {
	found := false
	errs := s.common(to, func(c Command) (bool, error) {
		f := s.lookup(c, e.key)
		if f == nil {
			return false, nil
		}
		found = true
		return true, s.take(c, f, e)
	})
	if found {
		return errs
	}
	var known []string
	for _, c := range to {
		known = append(known, s.flagsOf(c)...)
	}
	return append(errs, s.unknown(e, append(known, s.tops()...), why))
}

// take sets a flag from a file's entry, unless a higher place did. It is tried all the same:
// the file is wrong, and will be read without that flag some day.
func (s *Set) take(c Command, f *pflag.Flag, e *entry) error {
	if e.list && !many(f) {
		return fmt.Errorf("%v: %s takes one value, not a list", e.at, e.key)
	}
	if trial := s.trial(c, f.Name); trial != nil {
		if err := fill(trial, e); err != nil {
			return err
		}
	}
	if s.decided(c, f) || len(e.values) == 0 {
		return nil
	}
	s.sources[c.Path][f.Name] = Source{FromFile, e.values[0].at.String()}
	return fill(c.Flags, e)
}

func fill(flags *pflag.FlagSet, e *entry) error {
	for _, v := range e.values {
		if err := set(flags, e.key, v.text); err != nil {
			return fmt.Errorf("%v: %s: %w", v.at, e.key, err)
		}
	}
	return nil
}

// trial is the same command's flags once more, whose values nobody reads.
func (s *Set) trial(c Command, flag string) *pflag.FlagSet {
	for _, spare := range s.Spare {
		if spare.Path == c.Path && spare.Flags.Lookup(flag) != nil {
			return spare.Flags
		}
	}
	return nil
}

func (s *Set) unknown(e *entry, known []string, why string) error {
	return fmt.Errorf("%v: %s: %s%s", e.at, e.key, why, meant(e.key, known))
}

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

// many says that a flag may be given more than once.
func many(f *pflag.Flag) bool {
	_, is := f.Value.(pflag.SliceValue)
	return is
}

// set leaves the default where the text is none: pflag leaves a zero, which would be
// complained about once more.
func set(flags *pflag.FlagSet, name, text string) error {
	err := flags.Set(name, text)
	if err == nil {
		return nil
	}
	if f := flags.Lookup(name); !many(f) {
		_ = f.Value.Set(f.DefValue) // it was one at the registration
	}
	return bare(err)
}

// bare is pflag's error without its talk of the command line, and what to write instead.
func bare(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || invalid.Unwrap() == nil {
		return err
	}
	switch kind := invalid.GetFlag().Value.Type(); kind {
	case "bool":
		return fmt.Errorf("%q: give true or false", invalid.GetValue())
	case "duration":
		return fmt.Errorf("%q: give a duration like 10m or 250ms", invalid.GetValue())
	case "int", "int64", "uint32", "uint64", "int32", "uint":
		return fmt.Errorf("%q: give a whole number", invalid.GetValue())
	default:
		return fmt.Errorf("%q: %w", invalid.GetValue(), invalid.Unwrap())
	}
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
