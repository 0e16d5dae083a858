//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/strandline/strandline/internal/realstore"
)

const acceptedFile = "tools/vuln/accepted"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// run is at the root of the repository.
func run(ctx context.Context) error {
	text, err := os.ReadFile(acceptedFile)
	if err != nil {
		return err
	}
	known, err := parseAccepted(text)
	if err != nil {
		return fmt.Errorf("%s: %w", acceptedFile, err)
	}
	checker, err := realstore.Build(ctx, "govulncheck")
	if err != nil {
		return err
	}
	db, err := databaseOf(ctx, checker)
	if errors.Is(err, errNoDatabase) {
		fmt.Printf("VULNERABILITIES NOT CHECKED: database not reached: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("vulnerabilities: held against", db.name)
	found, err := scan(ctx, checker, db.args)
	if err != nil {
		return err
	}
	v := judge(found, known, time.Now())
	fmt.Print(v.text)
	if v.failed {
		return errors.New("the code calls what is vulnerable: update what the lines above name, or accept it for a while in " + acceptedFile)
	}
	return nil
}

// scan runs the checker over this module's packages.
func scan(ctx context.Context, checker string, args []string) ([]finding, error) {
	cmd := exec.CommandContext(ctx, checker, append(args, "-format", "json", "./...")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil { // with -format json, findings are no error
		return nil, fmt.Errorf("govulncheck: %w: %s", err, errs.Bytes())
	}
	return parseFindings(&out)
}
