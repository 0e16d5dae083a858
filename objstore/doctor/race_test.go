package doctor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

// TestWinnerOf: one winner, told apart from two, from none, and from what is not known.
func TestWinnerOf(t *testing.T) {
	lost, conflict, unknown := objstore.ErrExists, objstore.ErrConflict, objstore.ErrAmbiguous
	for name, c := range map[string]struct {
		errs    []error
		winner  int
		unclear bool
		outcome Outcome
	}{
		"one":               {[]error{lost, nil, conflict}, 1, false, OK},
		"two":               {[]error{nil, lost, nil}, 2, false, Missing},
		"two and unknown":   {[]error{nil, unknown, nil}, 2, true, Missing},
		"none":              {[]error{lost, lost}, -1, false, Failed},
		"none but unknown":  {[]error{lost, unknown}, -1, true, Failed},
		"one and unknown":   {[]error{nil, unknown}, 0, true, OK},
		"none, all refused": {[]error{objstore.ErrUnsupported, objstore.ErrUnsupported}, -1, true, Missing},
	} {
		winner, unclear, err := winnerOf(c.errs)
		got := judge(check{required: true}, err).Outcome
		if winner != c.winner || (unclear != nil) != c.unclear || got != c.outcome {
			t.Errorf("%s: racer %d, unclear %v, %s (%v)", name, winner, unclear, got, err)
		}
	}
}

// TestTheirsWithALostAnswer: the object of a race may be that of a racer whose answer was
// lost; that is no proof of two winners.
func TestTheirsWithALostAnswer(t *testing.T) {
	s := &session{d: newLedger(&one{body: named(1)}, 0)}
	told := []error{nil, objstore.ErrAmbiguous}
	err := (&trial{session: s}).theirs(t.Context(), "key", told, named)
	if got := judge(check{}, err).Outcome; got != Failed || !errors.Is(err, objstore.ErrAmbiguous) {
		t.Errorf("%s: %v", got, err)
	}
	told[1] = objstore.ErrExists
	if got := judge(check{}, (&trial{session: s}).theirs(t.Context(), "key", told, named)).Outcome; got != Missing {
		t.Errorf("without: %s", got)
	}
}

func TestSkew(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct{ date, before, after, want float64 }{
		{10, 10.2, 10.4, 0}, // the header's second began before the question
		{10, 9.5, 10.5, 0},
		{20, 9.5, 10.5, 9.5},
		{0, 9.5, 10.5, -8.5},
	} {
		skew := skewOf(at(c.date), at(c.before), at(c.after))
		if skew != time.Duration(c.want*float64(time.Second)) {
			t.Errorf("%+v: %v", c, skew)
		}
	}
}

// one is a store with one object.
type one struct {
	objstore.Driver
	body []byte
}

func (o *one) Get(context.Context, string, objstore.Range, string) (io.ReadCloser, objstore.Info, error) {
	return io.NopCloser(bytes.NewReader(o.body)), objstore.Info{Size: int64(len(o.body))}, nil
}
