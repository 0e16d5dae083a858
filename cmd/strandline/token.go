package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/access"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make bearer tokens, and the lines of a token file",
		Long: "A token file (--token-file of up, writer, reader, auditor and cache) has a line for each token: its name, its scopes and its\n" +
			"hash. append: rows in. read: rows, status, metrics and consumers. admin: trim, delete, flush; at a cache: delete. No scope\n" +
			"implies another. The file is read again when it changes: put a new one in its place (mv), and a broken one leaves the old in force.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenNewCommand(), a.tokenHashCommand())
	return cmd
}

func (a *app) tokenNewCommand() *cobra.Command {
	var scopes string
	cmd := &cobra.Command{
		Use:   "new NAME --scopes append,read",
		Short: "Make a token: printed once, with the line for the token file",
		Long: "The first line is the token, for whoever is to call: keep it in a file of theirs (--token-from FILE). The second is the line\n" +
			"for the token file of the servers. The token is stored nowhere and cannot be shown again.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sayToken(args[0], scopes, access.NewToken(), true)
		},
	}
	cmd.Flags().StringVar(&scopes, "scopes", "", "append, read, admin, joined by commas")
	return cmd
}

func (a *app) tokenHashCommand() *cobra.Command {
	var scopes string
	cmd := &cobra.Command{
		Use:   "hash NAME --scopes append,read",
		Short: "The token file's line for a token that comes on standard input",
		Long: "For tokens that another tool made: at least 128 bits of a random source, 22 characters or more of letters, digits and -._~+/.\n" +
			"A password that somebody thought of is no token: its hash is soon undone.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := a.typedToken(cmd.Context())
			if err != nil {
				return err
			}
			return a.sayToken(args[0], scopes, token, false)
		},
	}
	cmd.Flags().StringVar(&scopes, "scopes", "", "append, read, admin, joined by commas")
	return cmd
}

// typedToken is the one line of standard input.
func (a *app) typedToken(context.Context) (string, error) {
	const most = 4096
	line, err := bufio.NewReader(io.LimitReader(a.in, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// sayToken prints an entry, and the token itself if it is new.
func (a *app) sayToken(name, scopes, token string, isNew bool) error {
	entry, err := access.NewEntry(name, scopes, token)
	if err != nil {
		return usage("%w", err)
	}
	if !a.json {
		if isNew {
			fmt.Fprintln(a.out, token)
		}
		fmt.Fprintln(a.out, entry.Line())
		return nil
	}
	out := struct {
		Token string `json:"token,omitempty"`
		Line  string `json:"line"`
	}{Line: entry.Line()}
	if isNew {
		out.Token = token
	}
	return json.NewEncoder(a.out).Encode(out)
}
