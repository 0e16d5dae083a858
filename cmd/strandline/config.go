package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/strandline/strandline/internal/settings"
)

const configName = "config"

// services are the commands that have knobs, not only arguments.
func services() []string { return []string{"up", "writer", "auditor", "reader", "cache"} }

func (a *app) configCommand() *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use:   "config [COMMAND [-- FLAG…]]",
		Short: "Print what is in force and from where: flag, environment, file or default",
		Long: "Prints every knob of up, writer, auditor, reader and cache, or those of one COMMAND, with value, source, unit, range, and whether\n" +
			"it is tunable, or an invariant of the deployment. Flags after -- are taken as COMMAND's own. Secrets are shown as \"set\".\n" +
			"--check prints faults only, all of them, and opens neither catalog nor bucket; without COMMAND it looks at what the file has a\n" +
			"section for, or at the environment and the file alone.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.configOf(cmd, args, only) },
	}
	cmd.Flags().BoolVar(&only, "check", false, "print what is wrong, and nothing else; exit 2 if anything is")
	return cmd
}

// knobOut is one knob as config --json prints it.
type knobOut struct {
	Name    string         `json:"name"`
	Value   string         `json:"value"`
	Default string         `json:"default"`
	From    settings.Kind  `json:"from"`
	Where   string         `json:"where,omitempty"`
	Unit    string         `json:"unit"`
	Range   string         `json:"range,omitempty"`
	Class   settings.Class `json:"class"`
	Help    string         `json:"help"`
}

// commandOut is a command with its knobs.
type commandOut struct {
	Command string    `json:"command"`
	Knobs   []knobOut `json:"knobs"`
	Derived []derived `json:"derived,omitempty"`
}

// derived is a margin that follows from knobs.
type derived struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	How   string `json:"how"`
}

// configArgs are the command that was asked about, and flags of its own.
func configArgs(cmd *cobra.Command, args []string) (words, own []string) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		return args[:at], args[at:]
	}
	return args, nil
}

// configOf says what is in force.
func (a *app) configOf(cmd *cobra.Command, args []string, only bool) error {
	words, own := configArgs(cmd, args)
	path := strings.Join(words, " ")
	asked, err := a.asked(path)
	if err != nil {
		return err
	}
	if len(own) > 0 && path == "" {
		return usage("flags after -- are those of one command: strandline config COMMAND -- %s", strings.Join(own, " "))
	}
	if faults := a.faults(a.checked(path)); faults != nil {
		if only || path != "" {
			return usage("%w", faults)
		}
		fmt.Fprintf(a.err, "strandline: %v\n", faults)
	}
	if only {
		return nil
	}
	out := make([]commandOut, 0, len(asked))
	for _, c := range asked {
		out = append(out, a.knobsOf(c))
	}
	if a.json {
		return a.printJSON(struct {
			File     string       `json:"file,omitempty"`
			Commands []commandOut `json:"commands"`
		}{a.settingsFile(), out})
	}
	return a.printKnobs(out)
}

// asked are the commands that are printed.
func (a *app) asked(path string) ([]settings.Command, error) {
	var out []settings.Command
	for _, c := range a.set.Commands {
		if c.Path == path || path == "" && slices.Contains(services(), c.Path) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, usage("there is no command strandline %s; see strandline --help", path)
	}
	return out, nil
}

// checked are the commands whose flags are checked against each other: the one that was
// asked for, or those that the file is for.
func (a *app) checked(path string) []string {
	if path != "" {
		return []string{path}
	}
	var out []string
	for _, name := range services() {
		if a.set.HasSection(name) {
			out = append(out, name)
		}
	}
	return out
}

// knobsOf is what is in force for a command.
func (a *app) knobsOf(c settings.Command) commandOut {
	out := commandOut{Command: c.Path}
	c.Flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(notSettings(), f.Name) || f.Hidden {
			return
		}
		k, found := settings.Find(c.Path, f.Name)
		if !found {
			k = settings.Knob{Class: settings.Tunable}
		}
		src := a.set.Source(c.Path, f.Name)
		out.Knobs = append(out.Knobs, knobOut{
			Name: f.Name, Value: valueOf(f), Default: f.DefValue, From: src.Kind, Where: src.Where,
			Unit: cmp.Or(k.Unit, f.Value.Type()), Range: k.Text(), Class: k.Class, Help: f.Usage,
		})
	})
	out.Derived = derivedOf(c.Flags)
	return out
}

// valueOf is a flag's value as it is written, without what is secret.
func valueOf(f *pflag.Flag) string {
	if many, is := f.Value.(pflag.SliceValue); is {
		var out []string
		for _, v := range many.GetSlice() {
			out = append(out, settings.Shown(v))
		}
		return strings.Join(out, " ")
	}
	return settings.Shown(f.Value.String())
}

// derivedOf are the margins that follow from a command's flags.
func derivedOf(flags *pflag.FlagSet) []derived {
	read, rerr := flags.GetDuration("auditor-read-grace")
	orphan, oerr := flags.GetDuration("auditor-orphan-grace")
	if rerr != nil || oerr != nil {
		return nil
	}
	m := settings.Margins{ReadGrace: read, OrphanGrace: orphan}
	say := func(d time.Duration) string { return d.String() }
	return []derived{
		{"plan TTL", say(m.PlanTTL()), "half of the read grace that is in the catalog"},
		{"footer lifetime", say(m.FooterLife()), "that of the plan which named it"},
		{"job deadline", say(m.JobDeadline()), "half of the orphan grace that is in the catalog"},
	}
}

func (a *app) printKnobs(out []commandOut) error {
	for i, c := range out {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "strandline %s\n", c.Command)
		rows := [][]string{{"KNOB", "VALUE", "FROM", "UNIT", "RANGE", "CLASS"}}
		for _, k := range c.Knobs {
			from := settings.Source{Kind: k.From, Where: k.Where}.String()
			rows = append(rows, []string{k.Name, cmp.Or(k.Value, `""`), from, k.Unit, cmp.Or(k.Range, "-"), string(k.Class)})
		}
		for _, d := range c.Derived {
			rows = append(rows, []string{"(" + d.Name + ")", d.Value, "derived", "duration", d.How, string(settings.Invariant)})
		}
		if err := table(a.out, rows); err != nil {
			return err
		}
	}
	return nil
}
