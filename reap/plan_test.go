package reap

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/segment"
)

func TestPlanReapDeletesOnlyConfirmedAllDead(t *testing.T) {
	for _, v := range []probe.Verdict{probe.Stand, probe.GCWorthy, probe.Reapable, probe.Gone, "unheard of"} {
		for _, confirmed := range []bool{false, true} {
			a, reason := planReap(v, confirmed)
			if (a == doCondemn) != (v == probe.Reapable && confirmed) {
				t.Errorf("%s, confirmed %v: action %d", v, confirmed, a)
			}
			if reason == "" {
				t.Errorf("%s, confirmed %v: no reason", v, confirmed)
			}
		}
	}
	if a, _ := planReap(probe.Reapable, false); a != doConfirm {
		t.Errorf("all dead, unconfirmed: action %d, want confirm", a)
	}
	if a, _ := planReap(probe.GCWorthy, true); a != doGC {
		t.Errorf("gc-worthy: action %d", a)
	}
	if a, _ := planReap(probe.Gone, true); a != doBury {
		t.Errorf("gone: action %d", a)
	}
}

func chainAt(trimmed, condemned, rewritten, end segment.ID) catalog.ChainRow {
	return catalog.ChainRow{Chain: segment.Chain{Epoch: 1, Shard: 2}, Trimmed: trimmed, Condemned: condemned, Rewritten: rewritten, AbsorbedEnd: end, CondemnedAt: time.Unix(1000, 0)}
}

func slotsOf(ids ...segment.ID) (out []catalog.SlotRow) {
	for _, id := range ids {
		out = append(out, catalog.SlotRow{ID: id})
	}
	return out
}

func TestPlanTrim(t *testing.T) {
	named := []catalog.Ref{{Key: "seg/x"}}
	for name, c := range map[string]struct {
		plan     catalog.TrimPlan
		from, to segment.ID
		kept     bool
		err      error
	}{
		"nothing condemned":          {plan: catalog.TrimPlan{Chain: chainAt(3, 3, 5, 9), Due: true}, kept: true},
		"its grace runs":             {plan: catalog.TrimPlan{Chain: chainAt(1, 3, 5, 9), Slots: slotsOf(1, 2)}, kept: true},
		"due":                        {plan: catalog.TrimPlan{Chain: chainAt(1, 3, 5, 9), Due: true, Slots: slotsOf(1, 2)}, from: 1, to: 3},
		"due, a page of them":        {plan: catalog.TrimPlan{Chain: chainAt(1, 9, 9, 9), Due: true, Slots: slotsOf(1, 2, 3)}, from: 1, to: 4},
		"a ref names one":            {plan: catalog.TrimPlan{Chain: chainAt(1, 3, 5, 9), Due: true, Slots: slotsOf(1, 2), Named: named}, err: errAny},
		"a row is missing":           {plan: catalog.TrimPlan{Chain: chainAt(1, 4, 5, 9), Due: true, Slots: slotsOf(1, 3)}, err: catalog.ErrCorrupt},
		"no row at all":              {plan: catalog.TrimPlan{Chain: chainAt(1, 4, 5, 9), Due: true}, err: catalog.ErrCorrupt},
		"a row beyond the condemned": {plan: catalog.TrimPlan{Chain: chainAt(1, 2, 5, 9), Due: true, Slots: slotsOf(1, 2)}, err: catalog.ErrCorrupt},
		"a row below trimmed":        {plan: catalog.TrimPlan{Chain: chainAt(2, 3, 5, 9), Due: true, Slots: slotsOf(1, 2)}, err: catalog.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			right, why, err := planTrim(c.plan)
			switch {
			case c.err == nil && err != nil, c.err != nil && err == nil, c.err != nil && !errors.Is(c.err, errAny) && !errors.Is(err, c.err):
				t.Fatalf("error %v, want %v", err, c.err)
			case c.kept != (why != ""):
				t.Fatalf("reason %q, kept %v", why, c.kept)
			case right.from != c.from || right.to != c.to:
				t.Fatalf("[%d, %d), want [%d, %d)", right.from, right.to, c.from, c.to)
			}
			if want := int(c.to - c.from); len(right.keys()) != want {
				t.Fatalf("%d keys, want %d", len(right.keys()), want)
			}
		})
	}
	right := slotRight{chain: segment.Chain{Epoch: 1, Shard: 2}, from: 9, to: 11}
	if want := []string{"seg/00000001.00000002.0000000000000009", "seg/00000001.00000002.000000000000000a"}; !slices.Equal(right.keys(), want) {
		t.Errorf("keys %v, want %v", right.keys(), want)
	}
}

var errAny = errors.New("any")

func TestPlanConclude(t *testing.T) {
	for name, c := range map[string]struct {
		row  catalog.ChainRow
		want conclusion
	}{
		"all trimmed":                        {chainAt(5, 5, 5, 5), nothingLeft},
		"rewritten, none condemned":          {chainAt(3, 3, 5, 9), mayCondemn},
		"condemned before: never joined":     {chainAt(1, 3, 5, 9), graceRuns},
		"nothing rewritten since the delete": {chainAt(3, 3, 3, 9), nothingLeft},
	} {
		row := c.row
		if got := planConclude(&row); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestHeadOfIsTheRow(t *testing.T) {
	row := chainAt(1, 3, 5, 9)
	row.Term, row.NextSeq, row.LastUUID, row.WatermarkSeq, row.WatermarkSegment = 4, 77, uuid.New(), 12, 2
	row.Consumers = []segment.Consumer{{Name: "b", Cursor: 2}, {Name: "a", Cursor: 1}}
	head := headOf(&row)
	body, err := segment.EncodeHead(head)
	if err != nil {
		t.Fatal(err)
	}
	back, err := segment.DecodeHead(body)
	if err != nil {
		t.Fatal(err)
	}
	if !sameHead(head, back) {
		t.Errorf("%+v read back as %+v", head, back)
	}
	row.Trimmed = 2
	if sameHead(headOf(&row), back) {
		t.Error("a head that differs in trimmed is not the same")
	}
}
