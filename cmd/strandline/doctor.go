package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// doctorFlags say which buckets are examined; no catalog is needed, nor a deployment.
type doctorFlags struct {
	dir    string
	stores []string
	accept bool
}

const acceptVersionedHelp = "use a bucket that keeps versions or has an object lock: deletes then free nothing there"

func (a *app) doctorCommand() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Prove on the real bucket every primitive that Strandline relies on",
		Long: "Writes throw-away objects under meta/doctor/, races for them, copies, lists, deletes, asks for the bucket's settings, and\n" +
			"leaves nothing behind. Safe beside a running deployment; some 400 requests and 20 MiB. Exit 0: all that is required holds;\n" +
			"1: something required is missing, denied or could not be proven, and the table says what that breaks; 5: the store cannot be\n" +
			"reached. writer, auditor and up run a short form at every start (up to 2 s) and refuse a store that fails it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "dir", "", "examine the embedded layout's bucket, DIR/bucket (default strandline-data, unless --store is given)")
	fs.StringArrayVar(&f.stores, "store", nil, "CLASS=URL[,URL…], as for all commands; any classes")
	fs.BoolVar(&f.accept, "accept-versioned", false, acceptVersionedHelp)
	return cmd
}

// buckets are what is to be examined.
func (f *doctorFlags) buckets() ([]classSpec, error) {
	if len(f.stores) > 0 {
		return parseClasses(f.stores)
	}
	dir := f.dir
	if dir == "" {
		dir = defaultDir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, usage("--dir: %w", err)
	}
	file := (&url.URL{Scheme: "file", Path: filepath.Join(abs, "bucket")}).String()
	return []classSpec{{string(segment.ClassStandard), []string{file}}}, nil
}

func (a *app) doctor(ctx context.Context, f *doctorFlags) error {
	specs, err := f.buckets()
	if err != nil {
		return err
	}
	var found []examined
	var errs []error // a bucket that is away is no reason to leave the others unexamined
	for _, spec := range specs {
		for _, raw := range spec.urls {
			if ctx.Err() != nil {
				return firstOf(context.Cause(ctx), a.printExamined(found))
			}
			e, err := a.examine(ctx, spec.class, raw, f.accept)
			if e != nil {
				found = append(found, *e)
			}
			errs = append(errs, err)
		}
	}
	if err := firstOf(errors.Join(errs...), a.printExamined(found)); err != nil {
		return err
	}
	for _, e := range found {
		if !e.OK() {
			return &exitError{code: exitFailed}
		}
	}
	return nil
}

// examined is one bucket's report.
type examined struct {
	class string
	doctor.Report
	whole bool // false: it ended early
}

// examine opens a bucket and runs the doctor on it. What was seen before an error is given
// with it.
func (a *app) examine(ctx context.Context, class, raw string, accept bool) (*examined, error) {
	d, err := openDriver(ctx, raw, modeRead)
	var denied *objstore.Error
	if errors.As(err, &denied) && errors.Is(denied, objstore.ErrDenied) && denied.Op == string(objstore.OpList) && strings.Contains(err.Error(), "AccessDenied") {
		// Not for a wrong key or an untrusted certificate.
		err = fmt.Errorf("%w (to be examined, a bucket needs s3:ListBucket)", err)
	}
	if err != nil {
		return nil, err
	}
	bar := a.progressOf(-1, "checks")
	report, err := doctor.Run(ctx, d, doctor.Options{
		Prefix: segment.DoctorPrefix, AcceptVersioned: accept,
		Progress: func(_, _ int, check string) { bar.Describe(check); _ = bar.Add(1) }, // a bar that cannot be drawn is no reason to stop
	})
	_ = bar.Finish() // likewise
	return &examined{class, report, err == nil}, errors.Join(err, d.Close())
}
