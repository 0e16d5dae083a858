//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/strandline/strandline/internal/realstore"
)

// errNoDatabase: neither the published one nor the module is to be had.
var errNoDatabase = errors.New("no database")

// database is what to check against: arguments, and a name for people.
type database struct {
	name string
	args []string
}

const (
	module = "golang.org/x/vulndb"
	// patience with a network that swallows what is sent.
	patience = 20 * time.Second
)

// databaseOf takes the published database if it answers, else the pinned module's reports.
func databaseOf(ctx context.Context, checker string) (database, error) {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(bound, checker, "-version").Output()
	if err == nil && strings.Contains(string(out), "DB updated:") { // it says so only of one that answered
		return database{name: "the published database"}, nil
	}
	dir, version, err := download(ctx)
	if err != nil {
		return database{}, fmt.Errorf("%w: the published one does not answer, and neither does the module's host: %w", errNoDatabase, err)
	}
	db, err := index(ctx, dir, version)
	return database{
		name: fmt.Sprintf("%s@%s (%s; newer reports are missed: the published database is not reached)", module, version, age(version, time.Now())),
		args: []string{"-db", "file://" + db},
	}, err
}

// download has the module as it is pinned, and its sum checked.
func download(ctx context.Context) (dir, version string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join("tools", "vuln")
	text, runErr := cmd.Output()
	var m struct{ Dir, Version, Error string }
	if err := json.Unmarshal(text, &m); err != nil {
		return "", "", errors.Join(runErr, err)
	}
	if m.Error != "" || runErr != nil {
		return "", "", fmt.Errorf("%s: %w", m.Error, runErr)
	}
	return m.Dir, m.Version, nil
}

// index makes a database of the module's reports, once.
func index(ctx context.Context, dir, version string) (string, error) {
	indexer, err := realstore.Build(ctx, "indexdb")
	if err != nil {
		return "", err
	}
	out, err := filepath.Abs(filepath.Join(".cache", "vulndb-"+version))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	partial, err := os.MkdirTemp(".cache", "vulndb-partial-")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, indexer, "-vulns", filepath.Join(dir, "data", "osv"), "-out", partial)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("indexdb: %w: %s", err, text)
	}
	// A run that is killed before this leaves a folder that nobody reads.
	return out, os.Rename(partial, out)
}

// age reads the day out of a version of Go's own making.
func age(version string, now time.Time) string {
	parts := strings.Split(version, "-")
	if len(parts) == 3 {
		if at, err := time.Parse("20060102150405", parts[1]); err == nil {
			return fmt.Sprintf("of %s, %d days old", at.Format(time.DateOnly), int(now.Sub(at).Hours()/24))
		}
	}
	return "of unknown age"
}
