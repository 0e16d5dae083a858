package segment

import (
	"errors"
	"math"
	"testing"
)

func TestToken(t *testing.T) {
	for want, tok := range map[string]Token{
		"e1.t3.4711": {1, 3, 4711},
		"e0.t0.0":    {},
		"e4294967295.t18446744073709551615.18446744073709551615": {math.MaxUint32, math.MaxUint64, math.MaxUint64},
	} {
		if got := tok.String(); got != want {
			t.Errorf("%+v is %q, want %q", tok, got, want)
		}
		if got, err := ParseToken(want); err != nil || got != tok {
			t.Errorf("%q is %+v, %v", want, got, err)
		}
	}
	if p := (Token{2, 9, 7}).Pos(); p != (Pos{2, 7}) {
		t.Errorf("position %v", p)
	}
	for _, s := range []string{
		"", "4711", "e1", "e1.t3", "e1.t3.", "e1.t.5", "e.t3.5", "1.t3.5", "e1.3.5", "e1.t3.5.6", "e1.t3.5 ", " e1.t3.5",
		"e01.t3.5", "e1.t03.5", "e1.t3.05", "e1.t3.+5", "e+1.t3.5", "e1.t-3.5", "E1.T3.5", "e1.t3.0x5", "e1.t3.5_0",
		"e4294967296.t1.1", "e1.t18446744073709551616.1", "e1.t1.18446744073709551616", "e1.tt3.5", "ee1.t3.5",
	} {
		if got, err := ParseToken(s); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q was taken as %+v (%v)", s, got, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"e1.t3.4711", "e01.t3.1", "4711", "e1.t.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if tok, err := ParseToken(s); err == nil && tok.String() != s {
			t.Errorf("%q is %+v, whose form is %q", s, tok, tok)
		}
	})
}
