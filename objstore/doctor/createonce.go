package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/atonce"
)

const (
	racers     = 16
	raceRounds = 3
	// maxCAS bounds one writer's tries at the shared counter: with 16 writers of one
	// increment each, the unluckiest needs 16.
	maxCAS = 200
)

func createOnceChecks() []check {
	return []check{
		{
			name: "create-once", required: true, needs: []string{actPut, actGet}, run: createOnce,
			proves: "a second PUT with If-None-Match is refused, and changes nothing",
			breaks: "I8: two owners of a chain overwrite each other's slots; acknowledged rows vanish",
		},
		{
			name: "create-once-race", required: true, needs: []string{actPut, actGet}, run: createOnceRace,
			proves: fmt.Sprintf("of %d PUTs at once exactly one wins, and the object is its", racers),
			breaks: "I8: a stalled owner and its successor both publish one position; the rows of one are lost",
		},
		{
			name: "replace", required: true, needs: []string{actPut, actGet}, run: replace,
			proves: "a PUT with If-Match replaces exactly that version; a stale one is refused",
			breaks: "I6: a chain's head in rw/ goes back, and rebuild and the start trust it",
		},
		{
			name: "replace-race", required: true, needs: []string{actPut, actGet}, run: replaceRace,
			proves: fmt.Sprintf("%d writers that count up by If-Match lose no step", racers),
			breaks: "I6: of two writers of a head one is lost unnoticed",
		},
		{
			name: "replace-absent", needs: []string{actPut}, run: replaceAbsent,
			proves: "If-Match on an absent key is refused",
			breaks: "nothing: no protocol relies on it",
		},
	}
}

func createOnce(ctx context.Context, t *trial) error {
	key, first := t.key("key"), []byte("first")
	if _, err := t.put(ctx, key, first, once); err != nil {
		return err
	}
	_, err := t.put(ctx, key, []byte("second"), once)
	if err := refusedAs(err, objstore.ErrExists, "If-None-Match is ignored: a second PUT of the key was taken"); err != nil {
		return err
	}
	return t.holds(ctx, key, first, "the second PUT was refused, and changed the object")
}

func createOnceRace(ctx context.Context, t *trial) error {
	for round := range raceRounds {
		key := t.key(strconv.Itoa(round))
		errs := atonce.Run(racers, func(i int) error {
			_, err := t.put(ctx, key, named(i), once)
			return err
		})
		if err := t.theirs(ctx, key, errs, named); err != nil {
			return err
		}
	}
	return nil
}

func replace(ctx context.Context, t *trial) error {
	key, second := t.key("key"), []byte("second")
	v1, err := t.make(ctx, key, []byte("first"))
	if err != nil {
		return err
	}
	if _, err := t.put(ctx, key, second, objstore.PutOptions{IfMatch: v1.ETag}); err != nil {
		if errors.Is(err, objstore.ErrPrecondition) {
			return lacks("If-Match with the object's own ETag is refused: %v", err)
		}
		return err
	}
	if err := t.holds(ctx, key, second, "If-Match with the object's own ETag was taken, and replaced nothing"); err != nil {
		return err
	}
	_, err = t.put(ctx, key, []byte("third"), objstore.PutOptions{IfMatch: v1.ETag})
	if err := refusedAs(err, objstore.ErrPrecondition, "If-Match is ignored: a PUT with a stale ETag was taken"); err != nil {
		return err
	}
	return t.holds(ctx, key, second, "a PUT with a stale ETag was refused, and changed the object")
}

func replaceRace(ctx context.Context, t *trial) error {
	key := t.key("counter")
	if _, err := t.make(ctx, key, []byte("0")); err != nil {
		return err
	}
	if err := errors.Join(atonce.Run(racers, func(i int) error { return t.increment(ctx, key, i) })...); err != nil {
		return err
	}
	n, _, err := t.counter(ctx, key)
	if err == nil && n != racers {
		err = lies("%d writers counted up by If-Match, each was told that it did, and the counter says %d", racers, n)
	}
	return err
}

// increment is one step of writer i, tried until its condition holds. The body tells its
// writer, for equal bytes have equal ETags.
func (t *trial) increment(ctx context.Context, key string, i int) error {
	for range maxCAS {
		n, etag, err := t.counter(ctx, key)
		if err != nil {
			return err
		}
		_, err = t.put(ctx, key, fmt.Appendf(nil, "%d by %d", n+1, i), objstore.PutOptions{IfMatch: etag})
		if !errors.Is(err, objstore.ErrPrecondition) && !errors.Is(err, objstore.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("a writer did not get through in %d tries", maxCAS)
}

func (t *trial) counter(ctx context.Context, key string) (n int, etag string, err error) {
	got, info, err := t.read(ctx, key, objstore.Whole, "")
	if err != nil {
		return 0, "", err
	}
	if _, err := fmt.Sscanf(string(got), "%d", &n); err != nil {
		return 0, "", lies("the counter holds %.20q, which nobody wrote", got)
	}
	return n, info.ETag, nil
}

func replaceAbsent(ctx context.Context, t *trial) error {
	_, err := t.put(ctx, t.key("absent"), []byte("x"), objstore.PutOptions{IfMatch: neverETag})
	if err == nil {
		return lacks("If-Match on a key that is not there creates it")
	}
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return refusedAs(err, objstore.ErrPrecondition, "")
}
