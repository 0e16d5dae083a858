package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/strandline/strandline/segment"
)

func TestCheckToken(t *testing.T) {
	row := func(term segment.Term, first, last segment.ID, seq segment.Seq) TermRow {
		return TermRow{Term: term, First: first, Last: last, LastSeq: seq}
	}
	acquired := func(term segment.Term) TermRow { return TermRow{Term: term} }
	for name, x := range map[string]struct {
		terms  []TermRow
		term   segment.Term
		seq    segment.Seq
		forked segment.Seq // 0: no fork
		by     segment.Term
	}{
		"no terms at all":                      {nil, 1, 5, 0, 0},
		"within its term":                      {[]TermRow{row(1, 1, 4, 90)}, 1, 90, 0, 0},
		"beyond it, and it is the last":        {[]TermRow{row(1, 1, 4, 90)}, 1, 91, 0, 0},
		"a term that has absorbed nothing yet": {[]TermRow{acquired(1)}, 1, 12, 0, 0},

		// A takeover: term 2 fenced at 5 (no rows), then wrote.
		"the last row before the fence":       {[]TermRow{row(1, 1, 4, 90), row(2, 5, 9, 140)}, 1, 90, 0, 0},
		"acknowledged, never published":       {[]TermRow{row(1, 1, 4, 90), row(2, 5, 9, 140)}, 1, 91, 91, 2},
		"far beyond":                          {[]TermRow{row(1, 1, 4, 90), row(2, 5, 9, 140)}, 1, 4711, 91, 2},
		"the new owner's own":                 {[]TermRow{row(1, 1, 4, 90), row(2, 5, 9, 140)}, 2, 141, 0, 0},
		"an old row with the new term":        {[]TermRow{row(1, 1, 4, 90), row(2, 5, 9, 140)}, 2, 7, 0, 0},
		"only the fence is absorbed by now":   {[]TermRow{row(1, 1, 4, 90), row(2, 5, 5, 90)}, 1, 91, 91, 2},
		"the taker died before its fence":     {[]TermRow{row(1, 1, 4, 90), acquired(2)}, 1, 91, 0, 0},
		"two takers, the first died":          {[]TermRow{row(1, 1, 4, 90), acquired(2), row(3, 5, 6, 95)}, 1, 91, 91, 3},
		"the one who died had acknowledged":   {[]TermRow{row(1, 1, 4, 90), acquired(2), row(3, 5, 6, 95)}, 2, 93, 91, 3},
		"the one who died, within history":    {[]TermRow{row(1, 1, 4, 90), acquired(2), row(3, 5, 6, 95)}, 2, 90, 0, 0},
		"the earliest of the later ones":      {[]TermRow{row(1, 1, 4, 90), row(2, 5, 6, 95), row(3, 7, 8, 99)}, 1, 97, 91, 2},
		"the middle one forked from the next": {[]TermRow{row(1, 1, 4, 90), row(2, 5, 6, 95), row(3, 7, 8, 99)}, 2, 97, 96, 3},
		"rows in any order":                   {[]TermRow{row(3, 7, 8, 99), row(1, 1, 4, 90), row(2, 5, 6, 95)}, 1, 97, 91, 2},
		"nothing of the chain was published":  {[]TermRow{acquired(1), row(2, 1, 1, 0)}, 1, 1, 1, 2},
		"before the first row":                {[]TermRow{acquired(1), row(2, 1, 1, 0)}, 1, 0, 0, 0},
		"a fence by a term, then its rows":    {[]TermRow{row(1, 1, 4, 90), row(2, 5, 5, 90), row(3, 6, 9, 120)}, 2, 91, 91, 3},
		"one below a term that was lost":      {[]TermRow{row(1, 1, 4, 90), row(9, 5, 6, 95)}, 7, 200, 91, 9},

		// Restarts on one's own disk: term 2 publishes term 1's segments under term 1.
		"resumed, nothing of term 2 yet":       {[]TermRow{row(1, 1, 4, 90), acquired(2)}, 1, 100, 0, 0},
		"resumed, term 1's rest is absorbed":   {[]TermRow{row(1, 1, 6, 100), row(2, 7, 8, 130)}, 1, 100, 0, 0},
		"resumed again and again, idle":        {[]TermRow{row(1, 1, 6, 100), acquired(2), acquired(3), acquired(4)}, 2, 100, 0, 0},
		"resumed, rows in the fourth":          {[]TermRow{row(1, 1, 6, 100), acquired(2), acquired(3), row(4, 7, 7, 110)}, 3, 100, 0, 0},
		"an idle term's token beyond the rest": {[]TermRow{row(1, 1, 6, 100), acquired(2), acquired(3), row(4, 7, 7, 110)}, 3, 101, 101, 4},
	} {
		t.Run(name, func(t *testing.T) {
			tok := segment.Token{Epoch: 1, Term: x.term, Seq: x.seq}
			err := CheckToken(x.terms, tok)
			var forked *ForkedError
			if !errors.As(err, &forked) {
				if x.forked != 0 || err != nil {
					t.Errorf("%v: %v, want a fork at %d", tok, err, x.forked)
				}
				return
			}
			if !errors.Is(err, ErrForked) || forked.Forked != x.forked || forked.Term != x.by || forked.Token != tok {
				t.Errorf("%v: %+v, want a fork at %d by term %d", tok, forked, x.forked, x.by)
			}
			if !strings.Contains(err.Error(), tok.String()) {
				t.Errorf("%v does not name the position", err)
			}
		})
	}
}

// TestTokenOfNoTerm: no owner ever had the token's term.
func TestTokenOfNoTerm(t *testing.T) {
	terms := []TermRow{{Term: 1, First: 1, Last: 4, LastSeq: 90}, {Term: 3}, {Term: 4, First: 5, Last: 6, LastSeq: 95}, {Term: 5}}
	for tok, never := range map[segment.Token]bool{
		{Epoch: 1, Term: 6, Seq: 1}:    true, // above the newest
		{Epoch: 1, Term: 6, Seq: 4711}: true,
		{Epoch: 1, Term: 2, Seq: 90}:   true,  // between two
		{Epoch: 1, Term: 5, Seq: 96}:   false, // the present owner's, with nothing absorbed yet
		{Epoch: 1, Term: 3, Seq: 90}:   false, // resumed, and idle
		{Epoch: 1, Term: 1, Seq: 1}:    false,
	} {
		err := CheckToken(terms, tok)
		var no *NoPositionError
		if errors.As(err, &no) != never || !never && err != nil {
			t.Errorf("%s: %v", tok, err)
			continue
		}
		if never && (!errors.Is(err, ErrNoPosition) || no.Token != tok || !strings.Contains(err.Error(), "newest is 5")) {
			t.Errorf("%s: %v", tok, err)
		}
	}
	if err := CheckToken(terms, segment.Token{Epoch: 1, Term: 2, Seq: 91}); !errors.Is(err, ErrForked) {
		t.Errorf("where to read again from is not said: %v", err)
	}
	if err := CheckToken(nil, segment.Token{Epoch: 1, Term: 9, Seq: 91}); err != nil {
		t.Errorf("a chain without terms: %v", err)
	}
}
