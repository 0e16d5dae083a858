package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/settings"
)

// streams are the process's ends; tests pass buffers.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// app is what every subcommand shares.
type app struct {
	streams
	json     bool
	logLevel string
	config   string
	set      *settings.Set // once the flags have their values
	checks   checks
	// settingsFault is what is wrong with environment and file; only config goes on with it.
	settingsFault error
}

// run executes one command line and returns the exit code of design 05.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := interrupted(ctx, root.ExecuteContext(ctx))
	if err == nil {
		return exitOK
	}
	var silent *exitError
	if !errors.As(err, &silent) || silent.err != nil {
		fmt.Fprintf(s.err, "strandline: %v\n", err)
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "strandline",
		Short: "A shared log tier on object storage",
		Long: "Strandline appends rows durably to a local segment log, publishes sealed segments to an\n" +
			"S3-compatible bucket, packs them, and reclaims what is dead. Start with: strandline up --dir ./data",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return a.configure(cmd, args) },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Version:           buildVersion(),
		Args:              usageArgs(cobra.NoArgs),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetUsageTemplate(wrappedFlags(root.UsageTemplate(), widthOf(a.out, plainWidth)))
	root.SetHelpFunc(a.printHelp)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w; see %s --help", err, cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON for machines; errors are plain text on stderr all the same, and the exit code tells their kind")
	f.StringVar(&a.config, "config", "", "YAML file of settings: flags by their names, those of one command below its name; flags and STRANDLINE_… go before it")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	root.AddCommand(
		a.upCommand(), a.writerCommand(), a.auditorCommand(), a.readerCommand(), a.cacheCommand(), a.configCommand(),
		a.appendCommand(), a.catCommand(), a.scanCommand(), a.streamsCommand(), a.trimCommand(), a.rmCommand(), a.consumersCommand(),
		a.statusCommand(), a.readyCommand(), a.topologyCommand(), a.fsckCommand(), a.explainCommand(), a.acceptLossCommand(), a.doctorCommand(), a.inspectCommand(),
		a.salvageCommand(), a.quarantineCommand(), a.tokenCommand(), a.driveCommand(), a.benchCommand(),
	)
	strictArgs(root)
	return root
}

// strictArgs gives wrong arguments of any subcommand the exit code of wrong usage.
func strictArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		sub.Args = usageArgs(sub.Args)
		strictArgs(sub)
	}
}

// usageArgs gives wrong arguments the exit code of wrong usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(cmd, args)
		switch {
		case err == nil:
			return nil
		case cmd.HasSubCommands() && len(args) > 0:
			return usage("unknown command %q for %q%s; see %s --help", args[0], cmd.CommandPath(), meantCommand(cmd, args[0]), cmd.CommandPath())
		default:
			return usage("%w; usage: %s", err, cmd.UseLine())
		}
	}
}

// meantCommand is the question whether one of cmd's own was meant by a word that is none.
func meantCommand(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // edits; cobra sets it only where it words the error itself
	near := cmd.SuggestionsFor(word)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// logger writes text to a terminal and JSON elsewhere.
func (a *app) logger() (*slog.Logger, error) { return a.loggerFrom(slog.LevelDebug) }

// loggerFrom is logger without what is below least.
func (a *app) loggerFrom(least slog.Level) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, usage("--log-level %q: give debug, info, warn or error", a.logLevel)
	}
	opts := &slog.HandlerOptions{Level: max(level, least)}
	if isTerminal(a.err) {
		return slog.New(slog.NewTextHandler(a.err, opts)), nil
	}
	opts.ReplaceAttr = durationsInWords
	return slog.New(slog.NewJSONHandler(a.err, opts)), nil
}

// durationsInWords writes 1.5s where JSON would have a number of nanoseconds: as text has it, and
// as every flag takes it.
func durationsInWords(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
