//go:build unix

package realstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/internal/flock"
)

// tools maps a program's name to its module under tools/ and its package.
var tools = map[string]struct{ module, pkg string }{
	"minio":         {"minio", "github.com/minio/minio"},
	"versitygw":     {"versitygw", "github.com/versity/versitygw/cmd/versitygw"},
	"collector":     {"otelcol", "github.com/strandline/strandline/tools/otelcol/collector"},
	"telemetrygen":  {"otelcol", "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen"},
	"golangci-lint": {"lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
	"gofumpt":       {"lint", "mvdan.cc/gofumpt"},
	"staticcheck":   {"lint", "honnef.co/go/tools/cmd/staticcheck"},
	"govulncheck":   {"vuln", "golang.org/x/vuln/cmd/govulncheck"},
	"indexdb":       {"vuln", "golang.org/x/vulndb/cmd/indexdb"},
}

// Build returns the path of a pinned program, and builds it if no binary of just these
// pins is there. Processes that build at once wait for one of them.
func Build(ctx context.Context, name string) (string, error) {
	tool, ok := tools[name]
	if !ok {
		return "", fmt.Errorf("tool %q is not pinned under tools/", name)
	}
	root, err := repoRoot()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "tools", tool.module)
	sum, err := pins(module)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache", "bin")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the tools' cache: %w", err)
	}
	binary := filepath.Join(cache, name+"-"+sum)
	unlock, err := flock.Lock(filepath.Join(cache, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := goBuild(ctx, module, tool.pkg, binary); err != nil {
		return "", err
	}
	return binary, dropOlder(cache, name, binary)
}

// pins is the hash of what decides a tool's build: its module, and what a module has of
// its own code.
func pins(module string) (string, error) {
	sum := sha256.New()
	own, err := filepath.Glob(filepath.Join(module, "*", "*.go")) // sorted
	if err != nil {
		return "", err
	}
	for _, path := range append([]string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")}, own...) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("reading the pins of a tool: %w", err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// goBuild writes the binary under its name only when it is whole: a build that is killed
// leaves a temporary file that the next one replaces.
func goBuild(ctx context.Context, module, pkg, binary string) error {
	partial := binary + ".partial"
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-o", partial, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", pkg, module, err, output.Bytes())
	}
	if err := os.Rename(partial, binary); err != nil {
		return fmt.Errorf("putting the built %s in place: %w", pkg, err)
	}
	return nil
}

// dropOlder removes binaries of other pins: MinIO's is 150 MB. A process that runs one
// keeps it until it ends.
func dropOlder(cache, name, keep string) error {
	old, err := filepath.Glob(filepath.Join(cache, name+"-*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range old {
		// "golangci-lint-HASH" also matches a tool named "golangci".
		if path != keep && !strings.Contains(strings.TrimPrefix(filepath.Base(path), name+"-"), "-") {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// repoRoot finds the folder with tools/ and go.mod, from the working folder up.
func repoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; {
		if _, err := os.Stat(filepath.Join(at, "tools", "minio", "go.mod")); err == nil {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("no checkout of strandline above %s: the servers are built from its tools folder", dir)
		}
		at = up
	}
}
