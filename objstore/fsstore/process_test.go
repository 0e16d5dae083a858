package fsstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

const (
	workerDir  = "FSSTORE_WORKER_DIR"
	workerName = "FSSTORE_WORKER_NAME"

	workers    = 4
	increments = 25
	contested  = 40
)

// work is what each worker process does: count up by compare-and-set, race for
// keys, whose names it prints if it won, and put and delete in directories that
// the others prune.
func work(dir, name string) error {
	d, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	for n := 0; n < increments; {
		ok, err := increment(d)
		if err != nil {
			return err
		}
		if ok {
			n++
		}
	}
	for i := range contested {
		key := fmt.Sprintf("race/%d", i)
		switch err := create(d, key, name); {
		case err == nil:
			fmt.Println(key)
		case !errors.Is(err, objstore.ErrExists):
			return err
		}
		own := fmt.Sprintf("prune/x/%s-%d", name, i)
		if err := create(d, own, name); err != nil {
			return err
		}
		out, err := d.Delete(context.Background(), []string{own})
		if err := errors.Join(err, out[0].Err); err != nil {
			return err
		}
	}
	return nil
}

func create(d *Driver, key, body string) error {
	_, err := d.Put(context.Background(), key, strings.NewReader(body), int64(len(body)), createOnce)
	return err
}

func increment(d *Driver) (bool, error) {
	b, info, err := body1(d, "rw/counter")
	if err != nil {
		return false, err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return false, err
	}
	next := strconv.Itoa(n + 1)
	_, err = d.Put(context.Background(), "rw/counter", strings.NewReader(next), int64(len(next)), objstore.PutOptions{IfMatch: info.ETag})
	if errors.Is(err, objstore.ErrPrecondition) {
		return false, nil
	}
	return err == nil, err
}

func body1(d *Driver, key string) ([]byte, objstore.Info, error) {
	rc, info, err := d.Get(context.Background(), key, objstore.Whole, "")
	if err != nil {
		return nil, info, err
	}
	b, err := io.ReadAll(rc)
	return b, info, errors.Join(err, rc.Close())
}

// TestProcesses: several processes at once on one directory.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	d := prepare(t, dir, "create")
	if err := create(d, "rw/counter", "0"); err != nil {
		t.Fatal(err)
	}
	var cmds [workers]*exec.Cmd
	var outs, errs [workers]bytes.Buffer
	for i := range cmds {
		cmds[i] = exec.Command(os.Args[0], "-test.run=^$")
		cmds[i].Env = append(os.Environ(), workerDir+"="+dir, fmt.Sprintf("%s=w%d", workerName, i))
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], &errs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	winner := map[string]string{}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("worker %d: %v, %s", i, err, errs[i].String())
		}
		for lines := bufio.NewScanner(&outs[i]); lines.Scan(); {
			if other, twice := winner[lines.Text()]; twice {
				t.Errorf("%s was won by %s and by w%d", lines.Text(), other, i)
			}
			winner[lines.Text()] = fmt.Sprintf("w%d", i)
		}
	}
	if len(winner) != contested {
		t.Errorf("%d keys were won, want %d", len(winner), contested)
	}
	for key, name := range winner {
		if b, _, err := body1(d, key); err != nil || string(b) != name {
			t.Errorf("%s holds %q, %v; %s won it", key, b, err, name)
		}
	}
	if b, _, err := body1(d, "rw/counter"); err != nil || string(b) != strconv.Itoa(workers*increments) {
		t.Errorf("the counter ends at %q, %v; want %d", b, err, workers*increments)
	}
	if got := listAll(t, d, "prune/", 10); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}
