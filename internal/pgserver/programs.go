//go:build unix

package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/strandline/strandline/internal/flock"
)

// place is where the programs are looked for and how they are installed. Tests have
// places of their own.
type place struct {
	versions string // holds VERSION/bin, as Debian lays them out
	pgConfig string // the program that knows where others put them
	apt      string
	lock     string // held while somebody installs
	cluster  string // Debian's file that says whether a package makes a server of its own
}

func debian() place {
	return place{
		versions: "/usr/lib/postgresql", pgConfig: "pg_config", apt: "apt-get",
		lock:    filepath.Join(os.TempDir(), "strandline-postgresql-install.lock"),
		cluster: "/etc/postgresql-common/createcluster.conf",
	}
}

// programs returns the folder with initdb, postgres and pg_basebackup.
func (p place) programs(ctx context.Context) (string, error) {
	if bin := p.find(ctx); bin != "" {
		return bin, nil
	}
	unlock, err := flock.Lock(p.lock)
	if err != nil {
		return "", err
	}
	defer unlock()
	if bin := p.find(ctx); bin != "" { // another test binary has just installed them
		return bin, nil
	}
	if err := p.install(ctx); err != nil {
		return "", fmt.Errorf("no PostgreSQL server in %s, and installing it did not work: %w; install the package postgresql (15 or newer) by hand", p.versions, err)
	}
	if bin := p.find(ctx); bin != "" {
		return bin, nil
	}
	return "", fmt.Errorf("apt-get installed postgresql, but there is no VERSION/bin/postgres in %s; install PostgreSQL 15 or newer by hand", p.versions)
}

// find takes the newest version there is.
func (p place) find(ctx context.Context) string {
	dirs, _ := filepath.Glob(filepath.Join(p.versions, "*", "bin")) // the pattern is ours and well-formed
	best, bestVersion := "", -1
	for _, dir := range dirs {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && version > bestVersion && complete(dir) {
			best, bestVersion = dir, version
		}
	}
	if best != "" {
		return best
	}
	out, err := exec.CommandContext(ctx, p.pgConfig, "--bindir").Output()
	if dir := strings.TrimSpace(string(out)); err == nil && complete(dir) {
		return dir
	}
	return ""
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres", "pg_basebackup"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// install brings the packages. postgresql-common comes first, so that its file can say
// that no server is to be made and started with the package: ours are throw-away ones.
func (p place) install(ctx context.Context) error {
	if _, err := exec.LookPath(p.apt); err != nil {
		return fmt.Errorf("this is no Debian: %w", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("apt-get needs root")
	}
	if err := p.aptGet(ctx, "install", "postgresql-common"); err != nil {
		// Package lists that are missing or too old are the usual reason.
		if err := p.aptGet(ctx, "update"); err != nil {
			return err
		}
		if err := p.aptGet(ctx, "install", "postgresql-common"); err != nil {
			return err
		}
	}
	if err := p.noCluster(); err != nil {
		return err
	}
	return p.aptGet(ctx, "install", "postgresql")
}

func (p place) aptGet(ctx context.Context, verb string, packages ...string) error {
	args := append([]string{"-q", "-y", "-o", "DPkg::Lock::Timeout=120", "--no-install-recommends", verb}, packages...)
	cmd := exec.CommandContext(ctx, p.apt, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s %s: %w\n%s", verb, strings.Join(packages, " "), err, tail(output.Bytes()))
	}
	return nil
}

// noCluster is appended: the last line of a name counts.
func (p place) noCluster() error {
	f, err := os.OpenFile(p.cluster, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("telling Debian to start no server of its own: %w", err)
	}
	_, err = f.WriteString("\ncreate_main_cluster = false\n")
	return errors.Join(err, f.Close())
}

// logTail is what an error quotes of a program's output.
const logTail = 16 << 10

func tail(text []byte) []byte { return text[max(0, len(text)-logTail):] }
