package postgres

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// maybeIntent is one intent, nil if none stands.
type maybeIntent struct{ in *catalog.Intent }

func (t *tx) askIntent(key, how string) *maybeIntent {
	out := &maybeIntent{}
	t.ask("SELECT "+column.Intents+" FROM intent WHERE key = $1"+how, func(scan column.Scan) error {
		r, err := column.Intent(scan)
		out.in = &r
		return err
	}, plain(key))
	return out
}

// claimed is the row of a key that was claimed.
type claimed struct {
	maybeIntent
	fresh bool // none stood: ours is there now, and goes with the transaction if it fails
}

// askClaim makes the key's row unless one stands, and keeps it either way, before anything
// else is looked at. Whoever announces, condemns or burns a key comes through its row, so
// two of them never pass each other: where no row stands, the key itself is what the
// second waits at. A row that was there and went away meanwhile leaves neither.
func (t *tx) askClaim(in *catalog.Intent) *claimed {
	c := &claimed{}
	t.ask("INSERT INTO intent ("+column.Intents+") VALUES ($1, $2, $3, $4, '[]', 0, 0, $5, 0) ON CONFLICT (key) DO NOTHING RETURNING key", func(scan column.Scan) error {
		c.fresh = true
		return scan(new(string))
	}, plain(in.Key), string(in.Class), plain(in.Serves), plain(in.Nonce), string(in.State))
	t.ask("SELECT "+column.Intents+" FROM intent WHERE key = $1 FOR UPDATE", func(scan column.Scan) error {
		r, err := column.Intent(scan)
		c.in = &r
		return err
	}, plain(in.Key))
	return c
}

// stood is the intent that stood before the claim.
func (c *claimed) stood() (*catalog.Intent, error) {
	switch {
	case c.in == nil:
		return nil, fmt.Errorf("%w: an intent went away", errMoved)
	case c.fresh:
		return nil, nil
	}
	return c.in, nil
}

// putIntent queues the row of a locked intent.
func (t *tx) putIntent(in *catalog.Intent) error {
	uploads, err := column.Uploads(in.Uploads)
	if err != nil {
		return err
	}
	t.exec("UPDATE intent SET class = $2, serves = $3, nonce = $4, uploads = $5, announced = $6, deadline = $7, state = $8, changed = $9 WHERE key = $1",
		plain(in.Key), string(in.Class), plain(in.Serves), plain(in.Nonce), uploads, column.Nanos(in.Announced), column.Nanos(in.Deadline), string(in.State), column.Nanos(in.Changed))
	return nil
}

// dropIntent forgets an intent and its judge's marker.
func (t *tx) dropIntent(key string) {
	t.exec("DELETE FROM intent WHERE key = $1", plain(key))
	t.exec("DELETE FROM marker WHERE duty = $1 AND id = $2", string(catalog.DutyOrphan), plain(key))
}

// Announce writes an output's intent before its object exists (03 §4 step 1). It claims
// the key before it looks for refs that name it.
func (d *DB) Announce(ctx context.Context, a catalog.Announce) (out catalog.Intent, err error) {
	if err := catalog.ValidateAnnounce(&a); err != nil {
		return out, err
	}
	err = d.write(ctx, "Announce", func(t *tx) error {
		out, err = t.announce(&a)
		return err
	})
	return out, err
}

func (t *tx) announce(a *catalog.Announce) (catalog.Intent, error) {
	claim := t.askClaim(&catalog.Intent{Key: a.Key, Class: a.Class, Serves: catalog.Serves(a.Holder), Nonce: a.Nonce, State: catalog.IntentStanding})
	named := t.askNamed(a.Key)
	settings := t.askSettings("")
	if err := t.flush(); err != nil {
		return catalog.Intent{}, err
	}
	leased := t.askLeased(a.Holder)
	if err := t.flush(); err != nil {
		return catalog.Intent{}, err
	}
	in, err := claim.stood()
	if err != nil {
		return catalog.Intent{}, err
	}
	put, err := catalog.AnnounceIntent(a, catalog.Announcing{Standing: in, Named: *named > 0, Leased: *leased}, t.now)
	if err != nil {
		return put, err
	}
	if err := t.putIntent(&put); err != nil {
		return catalog.Intent{}, err
	}
	t.arm(catalog.DutyOrphan, a.Key, a.Class, catalog.JudgeAt(&put, t.orphanGraceOf(settings)).Sub(t.now))
	return put, nil
}

// AddUpload keeps an upload's id before its first part is sent.
func (d *DB) AddUpload(ctx context.Context, key, nonce, upload string) error {
	return d.uploads(ctx, "AddUpload", key, nonce, func(in *catalog.Intent) { in.AddUpload(upload) })
}

// DropUpload forgets an upload that ended.
func (d *DB) DropUpload(ctx context.Context, key, nonce, upload string) error {
	return d.uploads(ctx, "DropUpload", key, nonce, func(in *catalog.Intent) { in.DropUploads(upload) })
}

func (d *DB) uploads(ctx context.Context, verb, key, nonce string, change func(*catalog.Intent)) error {
	return d.write(ctx, verb, func(t *tx) error {
		have := t.askIntent(key, " FOR UPDATE")
		if err := t.flush(); err != nil {
			return err
		}
		if err := catalog.CheckIntent(verb, have.in, key, nonce); err != nil {
			return err
		}
		change(have.in)
		return t.putIntent(have.in)
	})
}

// Intent is one by key.
func (d *DB) Intent(ctx context.Context, key string) (catalog.Intent, error) {
	var have *maybeIntent
	err := d.read(ctx, "Intent", func(t *tx) error {
		have = t.askIntent(key, "")
		return nil
	})
	if err == nil && have.in == nil {
		err = fmt.Errorf("%w: intent %s", catalog.ErrNotFound, key)
	}
	if err != nil {
		return catalog.Intent{}, err
	}
	return *have.in, nil
}
