package check_test

import (
	"errors"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// TestRolledBackCatalogGetsNoVerdict: the head knows more than the row, so what the
// catalog does not name may be live all the same.
func TestRolledBackCatalogGetsNoVerdict(t *testing.T) {
	x := tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "a", Rows: 3, Size: 10})
	row, err := x.Catalog.Chain(t.Context(), x.Chain)
	if err != nil {
		t.Fatal(err)
	}
	put := func(absorbedEnd segment.ID, etag string) string {
		t.Helper()
		body, err := segment.EncodeHead(&segment.Head{
			Epoch: x.Chain.Epoch, Shard: x.Chain.Shard, Term: row.Term, AbsorbedEnd: absorbedEnd, NextSeq: row.NextSeq, LastUUID: row.LastUUID,
			Condemned: 1, Trimmed: 1, Nonce: "n",
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := x.Store.PutIfMatch(t.Context(), segment.HeadKey(x.Chain), body, etag)
		if err != nil {
			t.Fatal(err)
		}
		return info.ETag
	}
	etag := put(row.AbsorbedEnd, "")
	if r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{}); err != nil || r.Verdict != check.Clean {
		t.Fatalf("a head that agrees: %+v, %v", r, err)
	}
	put(row.AbsorbedEnd+1, etag)
	if r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{}); !errors.Is(err, catalog.ErrRolledBack) {
		t.Fatalf("a head ahead of its row: want ErrRolledBack, got %+v, %v", r, err)
	}
	// The row's object was rewritten since, and is gone: nothing of it may be given up.
	key := segment.SlotKey(x.Chain, 1)
	x.Delete(key)
	if loss, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, key, "a"); !errors.Is(err, catalog.ErrRolledBack) || loss != nil {
		t.Fatalf("a loss proven on a catalog that was rolled back: %+v, %v", loss, err)
	}
}

// headOf is the head of a chain that did nothing yet.
func headOf(t *testing.T, c segment.Chain) []byte {
	t.Helper()
	body, err := segment.EncodeHead(&segment.Head{
		Epoch: c.Epoch, Shard: c.Shard, AbsorbedEnd: 1, NextSeq: 1, Condemned: 1, Trimmed: 1, Nonce: "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
