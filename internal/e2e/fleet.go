//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// The deployment.
const (
	shards  = 12
	writers = 3
)

// leaseTime is shorter than the catalog is away, so that appends are refused for a while, and
// a taker is not kept waiting.
const leaseTime = 3 * time.Second

// exitHeld: a chain's former owner has a lease that lives.
const exitHeld = 4

// auditFlags are those of every auditor: graces that pass within the run.
var auditFlags = []string{
	"auditor", "--auditor-read-grace", "3s", "--auditor-orphan-grace", "10s", "--settle-age", "1s", "--auditor-lease", "3s", "--settle-lease", "5s",
	"--stream-object-min", "64KiB",
}

// fleet is the processes that run.
type fleet struct {
	site     *Site
	writers  [writers]*Process
	auditors [2]*Process
	readers  [2]*Process
	disks    int // that writers had
	held     int // starts that were refused because a lease lived
}

// shardsOf are those of a writer, as --shard-index deals them.
func shardsOf(index int) (out []segment.Shard) {
	for s := range segment.Shard(shards) {
		if int(s)%writers == index {
			out = append(out, s)
		}
	}
	return out
}

// start founds the deployment and starts all of it.
func (f *fleet) start(ctx context.Context) (err error) {
	if _, err := f.site.Run(ctx, "topology", "set", "--shards", fmt.Sprint(shards)); err != nil {
		return err
	}
	for i := range f.auditors {
		if f.auditors[i], err = f.site.Start(ctx, fmt.Sprintf("auditor-%d", i), append(auditFlags, "--http", "127.0.0.1:0")...); err != nil {
			return err
		}
	}
	for i := range f.writers {
		if err := f.startWriter(ctx, i); err != nil {
			return err
		}
	}
	for i := range f.readers {
		if f.readers[i], err = f.site.Start(ctx, fmt.Sprintf("reader-%d", i), "reader", "--http", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	return nil
}

// startWriter starts a writer on a new disk. It is started again while another one's lease
// lives, as whatever supervises processes does.
func (f *fleet) startWriter(ctx context.Context, index int) error {
	name := fmt.Sprintf("writer-%d-%d", index, f.disks)
	args := []string{
		"writer", "--dir", f.site.Dir("disk-" + name), "--shard-index", fmt.Sprint(index), "--shard-count", fmt.Sprint(writers),
		"--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0", "--otlp-ack", "shared", "--lease-time", leaseTime.String(),
		"--shared-window", "100ms", "--segment-age", "1s", "--housekeeping", "1s", "--min-free-disk", "1MiB", "--shutdown-timeout", "40s",
	}
	f.disks++
	return child.Poll(ctx, startWithin, name+" starts", func() (bool, error) {
		p, err := f.site.Start(ctx, name, args...)
		var ended *child.EndedError
		if errors.As(err, &ended) && ended.Code() == exitHeld {
			f.held++
			return false, err
		}
		f.writers[index] = p
		return true, err
	})
}

// loseDisk kills a writer and deletes its disk. kept are the bytes that were on it.
func (f *fleet) loseDisk(index int) (kept int64, err error) {
	p := f.writers[index]
	if err := p.Kill(); err != nil {
		return 0, err
	}
	dir := f.site.Dir("disk-" + p.Name)
	if kept, err = bytesBelow(dir); err != nil {
		return 0, err
	}
	return kept, os.RemoveAll(dir)
}

// urls are where processes serve, as a client takes them.
func urls(processes ...*Process) string {
	var out []string
	for _, p := range processes {
		out = append(out, p.URL())
	}
	return strings.Join(out, ",")
}

// caller is a client of these processes.
func caller(processes ...*Process) (*client.Client, error) {
	return client.New(client.Config{URL: urls(processes...), Patience: startWithin})
}

// settles is how many rounds of settle an auditor has completed.
func settles(ctx context.Context, auditor *Process) (int, error) {
	c, err := caller(auditor)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var st struct {
		Auditor struct {
			Duties map[string]struct{ Completed int }
		}
	}
	err = c.Status(ctx, &st)
	return st.Auditor.Duties["settle"].Completed, err
}
