package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/atonce"
)

func raceCases() []testCase {
	return []testCase{
		{"Race/CreateOnce", raceCreate},
		{"Race/PutAndComplete", raceComplete},
		{"Race/Counter", raceCounter},
		{"Race/PutsAndDeletes", racePrune},
	}
}

const racers = 16

// oneWinner gives the index of the only nil error; losers lost by name. A loser
// may also be refused by 409 (CoreWeave) or not be applied at all.
func (e *env) oneWinner(errs []error) int {
	e.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			e.Fatalf("racers %d and %d both won", winner, i)
		case err == nil:
			winner = i
		default:
			e.wantKind(fmt.Sprintf("racer %d", i), err, objstore.ErrExists, objstore.ErrConflict, objstore.ErrUnavailable)
		}
	}
	if winner < 0 {
		e.Fatalf("nobody won: %v", errors.Join(errs...))
	}
	return winner
}

func raceCreate(e *env) {
	for round := range 8 {
		k := e.key(fmt.Sprintf("r/%d/slot", round))
		body := func(i int) []byte { return noise(uint64(i), 4096) }
		winner := e.oneWinner(atonce.Run(racers, func(i int) error {
			_, err := e.put(k, body(i), once)
			return err
		}))
		e.holds(k, body(winner))
	}
}

func raceComplete(e *env) {
	for round := range 4 {
		k := e.key(fmt.Sprintf("rc/%d", round))
		body := func(i int) []byte { return noise(uint64(100+i), 2048) }
		ids, parts := make([]string, 4), make([]objstore.Part, 4)
		for i := range ids {
			ids[i] = e.upload(k, nil)
			parts[i] = e.part(k, ids[i], 1, body(i))
		}
		winner := e.oneWinner(atonce.Run(8, func(i int) (err error) {
			if i < len(ids) {
				_, err = e.d.Complete(e.ctx(), k, ids[i], parts[i:i+1], once)
			} else {
				_, err = e.put(k, body(i), once)
			}
			return err
		}))
		e.holds(k, body(winner))
	}
}

// raceCounter: 8 x 15 increments by compare-and-set make 120, no more, no less.
func raceCounter(e *env) {
	const workers, each = 8, 15
	k := e.rw("counter")
	e.mustPut(k, []byte("0 start"))
	errs := atonce.Run(workers, func(i int) error {
		for n := 0; n < each; {
			b, info, err := e.read(k, objstore.Whole, "")
			if err != nil {
				return err
			}
			count, err := strconv.Atoi(strings.Fields(string(b))[0])
			if err != nil {
				return err
			}
			// The bodies are all different: ETags may be digests of them (ABA).
			next := fmt.Appendf(nil, "%d by %d/%d", count+1, i, n)
			_, err = e.put(k, next, objstore.PutOptions{IfMatch: info.ETag})
			switch {
			case err == nil:
				n++
			case errors.Is(err, objstore.ErrPrecondition), errors.Is(err, objstore.ErrConflict), errors.Is(err, objstore.ErrUnavailable):
			default:
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		e.Fatal(err)
	}
	b, _, err := e.read(k, objstore.Whole, "")
	if err != nil || !bytes.HasPrefix(b, []byte("120 ")) {
		e.Fatalf("the counter ends at %q, %v; want 120", b, err)
	}
}

// racePrune: deletes that empty a directory do no harm to puts in it, but for a
// 409, after which the put is made again (versitygw).
func racePrune(e *env) {
	errs := atonce.Run(8, func(i int) error {
		for n := range 25 {
			k := e.key(fmt.Sprintf("prune/%d/x/%d-%d", n%3, i, n))
			var err error
			// A directory pruned under the put is a 409 on versitygw and, seldom, a 403
			// on MinIO. Neither applied it: whoever puts tries again.
			for range 50 {
				if _, err = e.put(k, []byte(k), once); !errors.Is(err, objstore.ErrConflict) && !errors.Is(err, objstore.ErrDenied) {
					break
				}
			}
			if err != nil {
				return err
			}
			if got, _, err := e.read(k, objstore.Whole, ""); err != nil || string(got) != k {
				return fmt.Errorf("%s after its put: %q, %w", k, got, err)
			}
			results, err := e.d.Delete(e.ctx(), []string{k})
			if err != nil {
				return err
			}
			if results[0].Err != nil {
				return results[0].Err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		e.Fatal(err)
	}
	e.listed(e.key("prune/"), nil)
}
