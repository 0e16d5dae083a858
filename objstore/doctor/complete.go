package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/atonce"
)

const completeRounds = 2

func completeChecks() []check {
	needs := []string{actPut, actGet, actAbort}
	return []check{
		{
			name: "complete", required: true, needs: needs, run: complete, lacks: noComplete,
			proves: "a multipart upload is published by a conditional complete, with its metadata",
			breaks: "an output larger than one PUT cannot be published",
		},
		{
			name: "complete-once", required: true, needs: append(needs, actListUploads), run: completeOnce, lacks: noComplete,
			proves: "a complete with If-None-Match on a standing key is refused, and changes nothing",
			breaks: "I2, I8: a settled object that refs name, or an owner's slot, is overwritten without a word",
		},
		{
			name: "complete-race", required: true, needs: needs, run: completeRace, lacks: noComplete,
			proves: fmt.Sprintf("of %d PUTs and %d completes at once exactly one wins", racers/2, racers/2),
			breaks: "I8: two movers, or two owners, both publish one key; refs name bytes that are not there",
		},
		{
			name: "complete-replace", needs: needs, run: completeReplace,
			proves: "a complete with a stale If-Match is refused",
			breaks: "nothing: no protocol replaces by an upload",
		},
	}
}

func noComplete(c *objstore.Capabilities) { c.ConditionalComplete = false }

// conditional skips what the driver does not declare.
func (t *trial) conditional() error {
	if !t.d.Capabilities().ConditionalComplete {
		return skips("the driver does not declare it: outputs are written with one PUT")
	}
	return nil
}

func complete(ctx context.Context, t *trial) error {
	if err := t.conditional(); err != nil {
		return err
	}
	key, body := t.key("key"), []byte("by parts")
	id, parts, err := t.upload(ctx, key, body, map[string]string{probeMeta: "kept"})
	if err != nil {
		return err
	}
	if _, err := t.d.Complete(ctx, key, id, parts, once); err != nil {
		if errors.Is(err, objstore.ErrExists) {
			return lacks("a conditional complete of an absent key is refused: %v", err)
		}
		return err
	}
	if err := t.holds(ctx, key, body, "an upload was completed, and the object is not its parts"); err != nil {
		return err
	}
	info, err := t.d.Head(ctx, key)
	if err == nil && info.Meta[probeMeta] != "kept" {
		err = lies("the metadata given when an upload began is not that of its object: %v", info.Meta)
	}
	return err
}

func completeOnce(ctx context.Context, t *trial) error {
	if err := t.conditional(); err != nil {
		return err
	}
	key, first := t.key("key"), []byte("first")
	if _, err := t.make(ctx, key, first); err != nil {
		return err
	}
	id, parts, err := t.upload(ctx, key, []byte("second"), nil)
	if err != nil {
		return err
	}
	_, err = t.d.Complete(ctx, key, id, parts, once)
	if err := refusedAs(err, objstore.ErrExists, "If-None-Match is ignored on a complete: it replaced a standing object"); err != nil {
		return err
	}
	if err := t.holds(ctx, key, first, "the complete was refused, and changed the object"); err != nil {
		return err
	}
	alive, err := t.hasUpload(ctx, key, id)
	if err != nil {
		return err
	}
	t.detail = "the refused upload is gone by itself"
	if alive {
		t.detail = "the refused upload stays until it is aborted"
	}
	return t.d.Abort(ctx, key, id)
}

// hasUpload says whether the store shows an upload under its exact key.
func (s *session) hasUpload(ctx context.Context, key, id string) (bool, error) {
	found, err := s.uploadsOf(ctx, key)
	for _, u := range found {
		if u.Key == key && u.ID == id {
			return true, err
		}
	}
	return false, err
}

func completeRace(ctx context.Context, t *trial) error {
	if err := t.conditional(); err != nil {
		return err
	}
	for round := range completeRounds {
		if err := t.completeRound(ctx, t.key(strconv.Itoa(round))); err != nil {
			return err
		}
	}
	return nil
}

// completeRound: the even racers put, the odd ones complete an upload.
func (t *trial) completeRound(ctx context.Context, key string) error {
	ids, parts := make([]string, racers), make([][]objstore.Part, racers)
	for i := 1; i < racers; i += 2 {
		var err error
		if ids[i], parts[i], err = t.upload(ctx, key, named(i), nil); err != nil {
			return err
		}
	}
	errs := atonce.Run(racers, func(i int) error {
		if i%2 == 0 {
			_, err := t.put(ctx, key, named(i), once)
			return err
		}
		_, err := t.d.Complete(ctx, key, ids[i], parts[i], once)
		return err
	})
	if err := t.theirs(ctx, key, errs, named); err != nil {
		return err
	}
	for i := 1; i < racers; i += 2 {
		if errs[i] == nil {
			continue
		}
		if err := t.d.Abort(ctx, key, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

func completeReplace(ctx context.Context, t *trial) error {
	if err := t.conditional(); err != nil {
		return err
	}
	key := t.key("key")
	if _, err := t.make(ctx, key, []byte("first")); err != nil {
		return err
	}
	id, parts, err := t.upload(ctx, key, []byte("second"), nil)
	if err != nil {
		return err
	}
	_, err = t.d.Complete(ctx, key, id, parts, objstore.PutOptions{IfMatch: neverETag})
	if err == nil {
		return lacks("If-Match is ignored on a complete")
	}
	return errors.Join(refusedAs(err, objstore.ErrPrecondition, ""), t.d.Abort(ctx, key, id))
}
