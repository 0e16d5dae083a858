package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/strandline/strandline/internal/filewatch"
)

// Source gives the token that this process presents to others: from a file, read again
// when it is replaced, or fixed. It is safe for concurrent use.
type Source struct {
	file string

	mu    sync.Mutex
	seen  fs.FileInfo
	token string
}

// FromFile takes the token that a file holds, and nothing else but white space. The file
// is read at once, so that a wrong name is told at the start.
func FromFile(path string) (*Source, error) {
	s := &Source{file: path}
	_, err := s.Token(context.Background())
	return s, err
}

// Fixed is a token that came otherwise: from the environment.
func Fixed(token string) (*Source, error) {
	token = strings.TrimSpace(token)
	return &Source{token: token}, checkToken(token)
}

// Token is the one to present now. A file that is broken for the moment is an error: the
// old token may be revoked for a reason.
func (s *Source) Token(context.Context) (string, error) {
	if s.file == "" {
		return s.token, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.file)
	if err != nil {
		return "", fmt.Errorf("the token to present: %w", err)
	}
	if s.seen != nil && os.SameFile(info, s.seen) && info.ModTime().Equal(s.seen.ModTime()) && info.Size() == s.seen.Size() {
		return s.token, nil
	}
	token, err := readToken(s.file)
	if err != nil {
		return "", fmt.Errorf("the token to present, of %s: %w", s.file, err)
	}
	s.token, s.seen = token, info
	return token, nil
}

func readToken(path string) (string, error) {
	f, err := filewatch.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(f, 2*mostToken))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("it holds more than a token: give the file of what strandline token new printed first, not the token file of a server")
	}
	return token, checkToken(token)
}
