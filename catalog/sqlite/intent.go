package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// intent reads one, nil if none stands.
func (t *tx) intent(key string) (in *catalog.Intent, err error) {
	err = t.query("SELECT "+column.Intents+" FROM intent WHERE key = ?", func(scan column.Scan) error {
		r, err := column.Intent(scan)
		in = &r
		return err
	}, key)
	return in, err
}

func (t *tx) putIntent(in *catalog.Intent) error {
	uploads, err := column.Uploads(in.Uploads)
	if err != nil {
		return err
	}
	return t.exec("INSERT INTO intent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET class = excluded.class, serves = excluded.serves, "+
		"nonce = excluded.nonce, uploads = excluded.uploads, announced = excluded.announced, deadline = excluded.deadline, state = excluded.state, changed = excluded.changed",
		in.Key, string(in.Class), in.Serves, in.Nonce, uploads, column.Nanos(in.Announced), column.Nanos(in.Deadline), string(in.State), column.Nanos(in.Changed))
}

// dropIntent forgets an intent and its judge's marker.
func (t *tx) dropIntent(key string) error {
	if err := t.exec("DELETE FROM intent WHERE key = ?", key); err != nil {
		return err
	}
	return t.exec("DELETE FROM marker WHERE duty = ? AND id = ?", string(catalog.DutyOrphan), key)
}

func (t *tx) orphanGrace() (time.Duration, error) {
	s, err := t.settings()
	return s.OrphanGrace.Deleting(t.now, catalog.DefaultOrphanGrace), err
}

// named counts the refs that name a key.
func (t *tx) named(key string) (n int, err error) {
	_, err = t.one("SELECT COUNT(*) FROM object o JOIN ref r ON r.object = o.id WHERE o.key = ?", []any{key}, &n)
	return n, err
}

// Announce writes an output's intent before its object exists (03 §4 step 1).
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
	standing, e1 := t.intent(a.Key)
	named, e2 := t.named(a.Key)
	leased, e3 := t.leased(a.Holder)
	grace, e4 := t.orphanGrace()
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return catalog.Intent{}, err
	}
	put, err := catalog.AnnounceIntent(a, catalog.Announcing{Standing: standing, Named: named > 0, Leased: leased}, t.now)
	if err != nil {
		return put, err
	}
	if err := t.putIntent(&put); err != nil {
		return catalog.Intent{}, err
	}
	return put, t.arm(catalog.DutyOrphan, a.Key, a.Class, catalog.JudgeAt(&put, grace).Sub(t.now))
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
		in, err := t.intent(key)
		if err != nil {
			return err
		}
		if err := catalog.CheckIntent(verb, in, key, nonce); err != nil {
			return err
		}
		change(in)
		return t.putIntent(in)
	})
}

// Intent is one by key.
func (d *DB) Intent(ctx context.Context, key string) (out catalog.Intent, err error) {
	err = d.read(ctx, "Intent", func(t *tx) error {
		in, err := t.intent(key)
		if err != nil {
			return err
		}
		if in == nil {
			return fmt.Errorf("%w: intent %s", catalog.ErrNotFound, key)
		}
		out = *in
		return nil
	})
	return out, err
}
