package settings

import (
	"fmt"

	"github.com/spf13/pflag"
)

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
