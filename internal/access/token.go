package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// The scopes, as routes ask for them.
const (
	Append = "append"
	Read   = "read"
	Admin  = "admin"
)

// scopes are all there are, in the order of documents.
var scopes = []string{Append, Read, Admin}

const (
	// tokenBytes are 256 random bits: no guess and no table reaches them, today's or a
	// quantum computer's.
	tokenBytes = 32
	// tokenPrefix lets people and secret scanners see what it is.
	tokenPrefix = "slt_"
	// leastToken is 128 bits in base64: what is shorter was not made by a random source.
	leastToken = 22
	mostToken  = 512
)

// Hash is what a file keeps of a token.
type Hash [sha256.Size]byte

// String is the hash as it stands in a file.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

const hashPrefix = "sha256:"

// ErrToken: no token of ours looks like this.
var ErrToken = errors.New("not a token")

// NewToken makes a token. It is shown once and kept nowhere.
func NewToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the process instead
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashOf hashes a token; one that is made elsewhere needs 22 characters at least. The error
// does not show it.
func HashOf(token string) (Hash, error) {
	if err := checkToken(token); err != nil {
		return Hash{}, err
	}
	return sha256.Sum256([]byte(token)), nil
}

// checkToken holds a token against the characters of RFC 6750.
func checkToken(token string) error {
	switch {
	case len(token) < leastToken:
		return fmt.Errorf("%w: %d characters: take %d or more, from a random source (strandline token new)", ErrToken, len(token), leastToken)
	case len(token) > mostToken:
		return fmt.Errorf("%w: %d characters: %d at most", ErrToken, len(token), mostToken)
	}
	for _, c := range []byte(strings.TrimRight(token, "=")) {
		if !tokenChar(c) {
			return fmt.Errorf("%w: letters, digits and -._~+/ only, on one line", ErrToken)
		}
	}
	return nil
}

func tokenChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", c) >= 0
}
