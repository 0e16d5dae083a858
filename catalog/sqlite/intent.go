package sqlite

import (
	"context"
	"fmt"
	"slices"
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
	in, err := t.intent(a.Key)
	if err != nil {
		return catalog.Intent{}, err
	}
	named, err := t.named(a.Key)
	if err != nil {
		return catalog.Intent{}, err
	}
	leased, err := t.leased(a.Holder)
	if err != nil {
		return catalog.Intent{}, err
	}
	takeover, err := catalog.CheckAnnounce(a, in, named > 0, leased)
	if err != nil {
		return catalog.Intent{}, err
	}
	if !takeover {
		in = &catalog.Intent{Key: a.Key, Class: a.Class, Serves: catalog.Serves(a.Holder), State: catalog.IntentStanding}
	}
	in.Nonce, in.Announced, in.Deadline, in.Changed = a.Nonce, t.now, t.now.Add(a.Deadline), t.now
	if err := t.putIntent(in); err != nil {
		return catalog.Intent{}, err
	}
	grace, err := t.orphanGrace()
	if err != nil {
		return catalog.Intent{}, err
	}
	return *in, t.arm(catalog.DutyOrphan, a.Key, a.Class, catalog.JudgeAt(in, grace).Sub(t.now))
}

// AddUpload keeps an upload's id before its first part is sent.
func (d *DB) AddUpload(ctx context.Context, key, nonce, upload string) error {
	return d.uploads(ctx, "AddUpload", key, nonce, func(ids []string) []string {
		if slices.Contains(ids, upload) {
			return ids
		}
		return append(ids, upload)
	})
}

// DropUpload forgets an upload that ended.
func (d *DB) DropUpload(ctx context.Context, key, nonce, upload string) error {
	return d.uploads(ctx, "DropUpload", key, nonce, func(ids []string) []string { return without(ids, []string{upload}) })
}

func without(ids, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(gone, id) })
}

func (d *DB) uploads(ctx context.Context, verb, key, nonce string, change func([]string) []string) error {
	return d.write(ctx, verb, func(t *tx) error {
		in, err := t.intent(key)
		if err != nil {
			return err
		}
		if err := catalog.CheckIntent(verb, in, key, nonce); err != nil {
			return err
		}
		in.Uploads = change(in.Uploads)
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
