package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Verdict is the judgement on one settled object.
type Verdict string

// The verdicts.
const (
	Stand    Verdict = "stand"
	GCWorthy Verdict = "gc-worthy"
	Reapable Verdict = "reapable"
	Gone     Verdict = "gone"
)

// Tally is what a verdict rests on. Bytes are stored bytes of chunks; of an object
// without a footer, all its bytes are dead.
type Tally struct {
	LiveBytes, DeadBytes   int64
	LiveChunks, DeadChunks int
	Refs                   int  // that name the key, dead ones included
	Structural             bool // the bytes were read in full and are no object
	Reason                 string
}

// Store reads the end of an object; *objstore.Store is one.
type Store interface {
	ReadSuffix(ctx context.Context, key string, n int64) ([]byte, objstore.Info, error)
}

// Catalog is the one query.
type Catalog interface {
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
}

// Object is a settled object, and the class that the caller believes it to be of.
type Object struct {
	Key   string
	Class segment.Class
}

// Probe looks at one object. It never decides
// on a read that it could not complete. gcLeast dead bytes, and half of the object, make
// it gc-worthy.
func Probe(ctx context.Context, store Store, cat Catalog, o Object, gcLeast int64) (Verdict, Tally, error) {
	key, class := o.Key, o.Class
	kind, err := settledKind(key)
	if err != nil {
		return "", Tally{}, &RefsError{Key: key, Err: err}
	}
	// The object first: a ref that dies in between makes the verdict too careful.
	footer, size, err := readFooter(ctx, store, key)
	gone := errors.Is(err, objstore.ErrNotFound)
	// A store that says that its own record of the object does not validate has read it, too.
	structural := segment.IsStructural(err) || errors.Is(err, objstore.ErrCorrupt)
	if err != nil && !gone && !structural {
		return "", Tally{}, fmt.Errorf("probe %s: %w", key, err)
	}
	refs, rerr := cat.Liveness(ctx, key)
	if rerr != nil {
		return "", Tally{}, &RefsError{Key: key, Err: rerr}
	}
	if err := checkRefs(key, kind, class, refs); err != nil {
		return "", Tally{}, err
	}
	switch {
	case gone:
		return judgeGone(key, refs)
	case structural:
		return judgeStructural(key, size, refs, err)
	case footer.Kind != kind:
		return "", Tally{}, &DamageError{Key: key, Reason: fmt.Sprintf("the footer is of kind %d, the key of kind %d", footer.Kind, kind)}
	}
	return judge(key, footer, refs, gcLeast)
}

// settledKind is the kind of object that key names. A key of another shape is
// nothing to probe, and an unknown one stops deleting.
func settledKind(key string) (segment.ObjectKind, error) {
	k, err := segment.ParseKey(key)
	if err != nil {
		return 0, err
	}
	switch k.Kind {
	case segment.KeyStream:
		return segment.ObjStream, nil
	case segment.KeyPack:
		return segment.ObjPack, nil
	}
	return 0, fmt.Errorf("%w: %s is not a settled object: slots and records are never probed", segment.ErrUnknownKey, key)
}

// readFooter reads the object's end: one suffix GET, a second one only for a
// footer larger than that. size is 0 if nothing was read.
func readFooter(ctx context.Context, store Store, key string) (footer *segment.Footer, size int64, err error) {
	footer, err = segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, info, err := store.ReadSuffix(ctx, key, n)
		size = info.Size
		return tail, info.Size, err
	})
	return footer, size, err
}
