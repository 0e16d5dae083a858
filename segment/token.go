package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// Token is a position as clients are shown it: a row's seq, its epoch, and the term
// whose history the client read or wrote. The term is what tells a reader that comes
// back whether the rows after its own still are the ones that it would have met
// (catalog.CheckToken); a bare seq cannot.
type Token struct {
	Epoch Epoch
	Term  Term
	Seq   Seq
}

// String is the token's one form: e<epoch>.t<term>.<seq>, in decimal.
func (t Token) String() string {
	b := strconv.AppendUint([]byte{'e'}, uint64(t.Epoch), 10)
	b = strconv.AppendUint(append(b, ".t"...), uint64(t.Term), 10)
	return string(strconv.AppendUint(append(b, '.'), uint64(t.Seq), 10))
}

// Pos is the token without the term.
func (t Token) Pos() Pos { return Pos{t.Epoch, t.Seq} }

// ParseToken is the inverse of Token.String. It accepts the one form only: what is
// compared and stored as text must not have two.
func ParseToken(s string) (Token, error) {
	bad := func() (Token, error) {
		return Token{}, fmt.Errorf("%w: position %q is no token: give e<epoch>.t<term>.<seq> in decimal, e.g. e1.t3.4711, as it was handed out", ErrInvalid, s)
	}
	epoch, rest, ok := strings.Cut(s, ".t")
	if !ok || !strings.HasPrefix(epoch, "e") {
		return bad()
	}
	term, seq, ok := strings.Cut(rest, ".")
	if !ok {
		return bad()
	}
	e, err1 := strconv.ParseUint(epoch[1:], 10, 32)
	n, err2 := strconv.ParseUint(term, 10, 64)
	q, err3 := strconv.ParseUint(seq, 10, 64)
	t := Token{Epoch(e), Term(n), Seq(q)}
	if err1 != nil || err2 != nil || err3 != nil || t.String() != s { // leading zeros
		return bad()
	}
	return t, nil
}
