package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

func (a *app) inspectCommand() *cobra.Command {
	var b backendFlags
	var class string
	var list int
	cmd := &cobra.Command{
		Use:   "inspect FILE|KEY",
		Short: "Describe a segment file, or an object by its key",
		Long: "A path to a file is read as a segment file, or as an object copied out of a bucket.\n" +
			"Anything else is a key of the bucket that --dir or --store names. Nothing is changed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err == nil {
				return a.inspectFile(args[0], list)
			} else if _, keyErr := segment.ParseKey(args[0]); keyErr != nil {
				return usage("%q is neither a file (%w) nor a key: %w", args[0], err, keyErr)
			}
			return a.inspectKey(cmd.Context(), &b, class, args[0], list)
		},
	}
	b.register(cmd.Flags())
	cmd.Flags().StringVar(&class, "class", string(segment.ClassStandard), "class of the bucket that holds the key")
	cmd.Flags().IntVar(&list, "list", 20, "how many frames or chunks to list")
	return cmd
}

// show prints a description; one with a problem has the exit code of damage.
func (a *app) show(d interface{ Text() string }, problem string) error {
	err := a.printText(d)
	if err == nil && problem != "" {
		return &exitError{code: exitDamage}
	}
	return err
}

func (a *app) printText(d interface{ Text() string }) error {
	if a.json {
		return a.printJSON(d)
	}
	_, err := fmt.Fprint(a.out, d.Text())
	return err
}

// inspectFile tells the two kinds of file apart by name and header: a segment has
// one, an object has its footer at the end.
func (a *app) inspectFile(path string, list int) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return usage("%s is a directory; give a file of it", path)
	}
	head := make([]byte, segment.HeaderBytes)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := segment.ParseHeader(head); err == nil || filepath.Ext(path) == ".seg" {
		d, err := segment.DescribeSegment(f, info.Size(), list)
		if err != nil {
			return err
		}
		return a.show(d, d.Problem)
	}
	return a.showObject(info.Size(), list, func(n int64) ([]byte, error) {
		tail := make([]byte, min(n, info.Size()))
		_, err := f.ReadAt(tail, info.Size()-int64(len(tail)))
		return tail, err
	})
}

// inspectKey describes an object of the bucket; the small records are printed as
// they stand, once they prove valid.
func (a *app) inspectKey(ctx context.Context, b *backendFlags, class, key string, list int) (err error) {
	t, err := b.open(ctx, modeRead)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, t) }()
	set, err := t.classes.Set(class)
	if err != nil {
		return usage("--class: %w", err)
	}
	store := set.First()
	info, err := store.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("%w; strandline status counts what is there", err)
	}
	if err != nil {
		return err
	}
	k, err := segment.ParseKey(key)
	if err != nil {
		return err
	}
	switch k.Kind {
	case segment.KeySlot, segment.KeyStream, segment.KeyPack:
		return a.showObject(info.Size, list, func(n int64) ([]byte, error) {
			tail, _, err := store.ReadSuffix(ctx, key, n)
			return tail, err
		})
	default:
		body, _, err := store.ReadAll(ctx, key, 1<<20)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", body)
		return err
	}
}

// showObject reads as much of an object's end as its footer needs.
func (a *app) showObject(size int64, list int, tail func(n int64) ([]byte, error)) error {
	n := int64(segment.TailBytes)
	for {
		b, err := tail(n)
		if err != nil {
			return err
		}
		d, need, err := segment.DescribeObject(b, size, list)
		if err != nil {
			return err
		}
		if need == 0 {
			return a.show(d, d.Problem)
		}
		n = need
	}
}
