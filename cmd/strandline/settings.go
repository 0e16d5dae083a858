package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/settings"
)

// Variables of ours that are no flags.
func otherVariables() []string {
	return []string{tokenVariable, settings.Variable("version"), settings.Variable("help")}
}

// notSettings are flags that a file and the environment do not give.
func notSettings() []string { return []string{"help", "version", "config", "check"} }

// settingsOf are all commands below root as settings see them.
func (a *app) settingsOf(root *cobra.Command) *settings.Set {
	spare := (&app{streams: a.streams}).root()
	return &settings.Set{Commands: commandsOf(root), Spare: commandsOf(spare), Ours: notSettings(), Others: otherVariables()}
}

// commandsOf are the commands that do something, with the flags of their parents.
func commandsOf(root *cobra.Command) []settings.Command {
	var out []settings.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c != root {
			_ = c.InheritedFlags() // makes c.Flags() hold them, as a parse does
			out = append(out, settings.Command{Path: pathOf(c), Flags: c.Flags()})
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

// pathOf is a command's name without the program's.
func pathOf(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// settingsFile is the file that was named, if any.
func (a *app) settingsFile() string {
	if a.config != "" {
		return a.config
	}
	return os.Getenv(settings.FileVariable)
}

// configure gives the flags that were not given their values from the environment and the
// file. A fault anywhere in them is refused, whatever command runs: it would be one later.
func (a *app) configure(cmd *cobra.Command, args []string) error {
	set := a.settingsOf(cmd.Root())
	set.Running = []string{pathOf(cmd)}
	if cmd.Name() == configName {
		words, own := configArgs(cmd, args)
		set.Running = []string{strings.Join(words, " ")}
		if err := parseOwn(set, own); err != nil {
			return err
		}
	}
	err := set.Apply(a.settingsFile(), os.Environ())
	if cmd.Name() == configName && err != nil {
		a.settingsFault = err // is told among the others
		err = nil
	}
	a.set = set
	if err != nil {
		return usage("%w", err)
	}
	return nil
}

// parseOwn takes the flags after -- for the command that config is asked about.
func parseOwn(set *settings.Set, own []string) error {
	for _, c := range set.Commands {
		if c.Path == set.Running[0] {
			if err := c.Flags.Parse(own); err != nil {
				return usage("%w", err)
			}
		}
	}
	return nil
}

// checks are what a service's own flags are checked by, before anything is opened.
type checks map[string]func() error

// check remembers a command's.
func (a *app) check(path string, validate func() error) {
	if a.checks == nil {
		a.checks = checks{}
	}
	a.checks[path] = validate
}

// faults are those of the settings, and of the named services together.
func (a *app) faults(services []string) error {
	errs := []error{a.settingsFault}
	for _, name := range services {
		if validate := a.checks[name]; validate != nil {
			if err := validate(); err != nil {
				errs = append(errs, &serviceError{name, err})
			}
		}
	}
	if _, err := a.logger(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// serviceError says whose settings are wrong.
type serviceError struct {
	service string
	err     error
}

func (e *serviceError) Error() string {
	return "strandline " + e.service + ": " + strings.ReplaceAll(e.err.Error(), "\n", "\nstrandline "+e.service+": ")
}

func (e *serviceError) Unwrap() error { return e.err }

// validate joins the faults that show without opening anything.
func (b *backendFlags) validate() error {
	var errs []error
	if b.maxConns < leastMaxConns || b.maxConns > mostMaxConns {
		errs = append(errs, fmt.Errorf("--catalog-max-conns %d: give %d to %d", b.maxConns, leastMaxConns, mostMaxConns))
	}
	if len(b.stores) > 0 {
		_, err := parseStores(b.stores)
		errs = append(errs, err)
	}
	_, err := b.cache.config()
	return errors.Join(append(errs, err)...)
}
