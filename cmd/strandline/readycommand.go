package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// readyFlags are the knobs of `ready`.
type readyFlags struct {
	clientFlags
	timeout time.Duration
}

func (a *app) readyCommand() *cobra.Command {
	r := &readyFlags{}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask a process whether it is ready: exit 0 if so, 5 if not; what a container's health check runs",
		Long: "Asks /readyz of an up, writer, reader or auditor --http: a writer is not ready while a shard is poisoned, fenced or halted or the\n" +
			"disk is full, an auditor or reader not while it could not reach catalog and bucket lately.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.ready(cmd.Context(), r) },
	}
	r.register(cmd.Flags(), "http://"+defaultHTTP, "URL of the process")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

func (a *app) ready(ctx context.Context, r *readyFlags) error {
	u, err := url.Parse(r.server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return usage("--server: give a URL like http://%s", defaultHTTP)
	}
	if r.timeout <= 0 {
		return usage("--timeout %v: give a positive one", r.timeout)
	}
	me, err := r.caller.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")+"/readyz", http.NoBody)
	if err != nil {
		return usage("--server: %w", err)
	}
	said, err := askReady(&http.Client{Transport: me.transport(&http.Transport{DisableKeepAlives: true})}, req)
	if err != nil {
		return &exitError{code: exitUnavailable, err: fmt.Errorf("%s is not ready: %w", u.Host, err)}
	}
	if a.json {
		return a.printJSON(map[string]string{"status": said})
	}
	_, err = fmt.Fprintln(a.out, said)
	return err
}

// maxReadyBytes bounds what is read of an answer.
const maxReadyBytes = 64 << 10

// askReady is the status of a process that is ready, or why it is not.
func askReady(c *http.Client, req *http.Request) (string, error) {
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or why not is known
	var said struct {
		Status, Title, Detail any
		Holds                 []string
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReadyBytes)).Decode(&said); err != nil {
		return "", fmt.Errorf("%s, and no answer of strandline's: %w", resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%v: %v", said.Title, said.Detail)
	}
	if len(said.Holds) > 0 {
		return fmt.Sprintf("%v, but deletes are held: %s", said.Status, strings.Join(said.Holds, ", ")), nil
	}
	return fmt.Sprint(said.Status), nil
}
