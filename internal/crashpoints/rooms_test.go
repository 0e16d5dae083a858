package crashpoints_test

import (
	"cmp"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/reap"
)

// The auditor's duties one by one, each through faults: for cuts between two of them.

func (w *world) classesOn(f *audittest.Faults) objstore.Classes {
	return objstore.Classes{standard: {f.Store(w.Tier)}}
}

func (w *world) reaper(f *audittest.Faults) *reap.Reaper {
	classes := w.classesOn(f)
	return reap.New(f.Catalog(w.Tier), classes, orphan.NewDeleter(classes), cmp.Or(w.GCLeast, probe.DefaultGCLeast))
}

func (w *world) trimmer(f *audittest.Faults) *reap.Trimmer {
	const holdMax = 1 << 30
	classes := w.classesOn(f)
	return reap.NewTrimmer(f.Catalog(w.Tier), classes, orphan.NewDeleter(classes), holdMax)
}

func (w *world) walker(f *audittest.Faults) *reap.Walker {
	classes := w.classesOn(f)
	return reap.NewWalker(f.Catalog(w.Tier), classes, orphan.NewDeleter(classes))
}

func (w *world) judgeOn(f *audittest.Faults) *orphan.Judge {
	classes := w.classesOn(f)
	return orphan.NewJudge(f.Catalog(w.Tier), classes, orphan.NewDeleter(classes))
}

func (w *world) walkOnce() []reap.WalkResult {
	w.T.Helper()
	return w.walker(&audittest.Faults{}).RunOnce(w.Ctx(), w.Take(catalog.DutyTeardown))
}
