package settle

import (
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// buries lets the reap-checks and the judge do their work, as often as two phases and an
// orphan grace ask for, and holds I5: of settled objects and uploads the bucket then has
// what refs name, and nothing else. The referee has seen to it that nothing named went.
func (x *tier) buries() {
	x.t.Helper()
	ctx := x.t.Context()
	classes := objstore.Classes{string(segment.ClassStandard): {x.store}}
	del := orphan.NewDeleter(classes)
	reaper, judge := reap.New(x.db, classes, del, 64<<20), orphan.NewJudge(x.db, classes, del)
	for range 4 {
		x.clock.advance(2 * time.Hour)
		ms, err := x.db.TakeDue(ctx, catalog.Take{Duties: []catalog.Duty{catalog.DutyReapCheck}, Owner: "reaper", Lease: time.Minute, Limit: 100})
		must(x.t, err)
		for _, res := range reaper.RunOnce(ctx, ms) {
			must(x.t, res.Err)
		}
		ms, err = x.db.TakeDue(ctx, catalog.Take{Duties: []catalog.Duty{catalog.DutyOrphan}, Owner: "judge", Lease: time.Minute, Limit: 100})
		must(x.t, err)
		for _, m := range ms {
			_, err := judge.RunOnce(ctx, m)
			must(x.t, err)
		}
	}
	named := make(map[string]bool)
	for _, r := range x.refs() {
		named[r.Key] = true
	}
	for _, prefix := range []string{segment.ObjPrefix, segment.PackPrefix} {
		for _, key := range x.objects(prefix) {
			if !named[key] {
				x.t.Errorf("I5: %s stays", key)
			}
		}
	}
	if ups, err := x.store.ListUploads(ctx, ""); err != nil || len(ups) != 0 {
		x.t.Errorf("I5: uploads stay: %+v, %v", ups, err)
	}
}
