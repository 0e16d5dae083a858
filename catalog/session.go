package catalog

import (
	"context"
	"errors"
	"fmt"
)

// Session names the database that a verb talks to, for as long as it certainly has lost no
// commit. Behind a fail-over or a restore is another one. It is compared, and stored nowhere.
// An empty one is of a database that cannot tell.
type Session string

// ErrSessionEnded: the verb rests on what was looked at in a session that is over (Within),
// so the commits that it knows of may be lost; nothing happened. It is ErrUnavailable, too:
// look again, and then call it again.
var ErrSessionEnded = errors.New("catalog: the session ended")

type sessionKey struct{}

// Within binds the verbs that are called with the context to a session: in any other one
// they are ErrSessionEnded. An empty session binds nothing.
func Within(ctx context.Context, s Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// CheckSession is what an implementation asks in each transaction, before anything of it
// counts: stands is the session that the transaction runs in, and is asked where one is bound.
func CheckSession(ctx context.Context, verb string, stands func() Session) error {
	if want, _ := ctx.Value(sessionKey{}).(Session); want != "" && want != stands() {
		return fmt.Errorf("%w: %w: %s: the database is not the one that was looked at: it was restarted, failed over or replaced", ErrUnavailable, ErrSessionEnded, verb)
	}
	return nil
}

// Gate makes an act that moves a chain on or deletes (act), if nothing says that the catalog
// was rolled back, and in a context that is bound to the session in which that was seen. It
// may call act twice, if the first call was ErrSessionEnded.
type Gate func(ctx context.Context, act func(ctx context.Context) error) error
