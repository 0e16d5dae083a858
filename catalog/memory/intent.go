package memory

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
)

// intentOf is the caller's own copy, nil if none stands.
func (t *tx) intentOf(key string) *catalog.Intent {
	have, ok := t.intent.get(key)
	if !ok {
		return nil
	}
	in := copyIntent(have)
	return &in
}

func (t *tx) putIntent(in *catalog.Intent) {
	row := copyIntent(in)
	t.intent.set(in.Key, &row)
}

// dropIntent forgets an intent and its judge's marker.
func (t *tx) dropIntent(key string) {
	t.intent.del(key)
	if m, ok := t.marker.get(markerKey{catalog.DutyOrphan, key}); ok {
		t.dropMarker(m)
	}
}

// Announce writes an output's intent before its object exists (03 §4 step 1).
func (c *Catalog) Announce(ctx context.Context, a catalog.Announce) (out catalog.Intent, err error) {
	if err := catalog.ValidateAnnounce(&a); err != nil {
		return out, err
	}
	err = c.write(ctx, "Announce", func(t *tx) error {
		out, err = t.announce(&a)
		return err
	})
	return out, err
}

func (t *tx) announce(a *catalog.Announce) (catalog.Intent, error) {
	in := t.intentOf(a.Key)
	if in != nil && in.State != catalog.IntentStanding && t.skip[BurnedKey] {
		in = nil
	}
	put, err := catalog.AnnounceIntent(a, catalog.Announcing{Standing: in, Named: t.isNamed(a.Key), Leased: t.leased(a.Holder)}, t.now)
	if err != nil {
		return put, err
	}
	t.putIntent(&put)
	t.arm(catalog.DutyOrphan, a.Key, a.Class, catalog.JudgeAt(&put, t.orphanGrace()).Sub(t.now))
	return put, nil
}

// AddUpload keeps an upload's id before its first part is sent.
func (c *Catalog) AddUpload(ctx context.Context, key, nonce, upload string) error {
	return c.uploads(ctx, "AddUpload", key, nonce, func(in *catalog.Intent) { in.AddUpload(upload) })
}

// DropUpload forgets an upload that ended.
func (c *Catalog) DropUpload(ctx context.Context, key, nonce, upload string) error {
	return c.uploads(ctx, "DropUpload", key, nonce, func(in *catalog.Intent) { in.DropUploads(upload) })
}

func (c *Catalog) uploads(ctx context.Context, verb, key, nonce string, change func(*catalog.Intent)) error {
	return c.write(ctx, verb, func(t *tx) error {
		in := t.intentOf(key)
		if err := catalog.CheckIntent(verb, in, key, nonce); err != nil {
			return err
		}
		change(in)
		t.putIntent(in)
		return nil
	})
}

// Intent is one by key.
func (c *Catalog) Intent(ctx context.Context, key string) (out catalog.Intent, err error) {
	err = c.read(ctx, "Intent", func(t *tx) error {
		in := t.intentOf(key)
		if in == nil {
			return fmt.Errorf("%w: intent %s", catalog.ErrNotFound, key)
		}
		out = *in
		return nil
	})
	return out, err
}
