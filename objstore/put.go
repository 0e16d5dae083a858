package objstore

import (
	"bytes"
	"context"
	"errors"
	"maps"
)

// PutOnce creates key with body, or finds that it already did. The errors that
// matter: ErrExists, another's object stands there; ErrAmbiguous, it may or may
// not stand there now or later: read before deciding, clean nothing up.
func (s *Store) PutOnce(ctx context.Context, key string, body []byte, meta map[string]string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	nonce := s.cfg.Nonce()
	return s.publish(ctx, publication{op: OpPut, key: key, nonce: nonce, call: func(ctx context.Context) (Info, error) {
		return s.put(ctx, key, body, PutOptions{IfNoneMatch: true, Meta: withNonce(meta, nonce)})
	}})
}

// PutIfMatch replaces the object whose ETag is etag; an empty etag creates it.
// Lost: ErrPrecondition (the object changed or is gone; then also ErrNotFound),
// or ErrExists for an empty etag. ErrAmbiguous as in PutOnce; it is also the
// answer when an own attempt may have stood and been replaced by another since.
// BUG: where something on the way repeats a request and gives the second answer, a
// replacement that was applied may read ErrPrecondition, once a later one stands over it.
func (s *Store) PutIfMatch(ctx context.Context, key string, body []byte, etag string) (Info, error) {
	if etag == "" {
		return s.PutOnce(ctx, key, body, nil)
	}
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	nonce := s.cfg.Nonce()
	return s.publish(ctx, publication{op: OpPut, key: key, nonce: nonce, etag: etag, call: func(ctx context.Context) (Info, error) {
		info, err := s.put(ctx, key, body, PutOptions{IfMatch: etag, Meta: withNonce(nil, nonce)})
		if errors.Is(err, ErrNotFound) { // S3 answers 404 to If-Match on an absent key
			err = &Error{Op: "put", Key: key, Kind: ErrPrecondition, Err: err}
		}
		return info, err
	}})
}

func (s *Store) put(ctx context.Context, key string, body []byte, opts PutOptions) (Info, error) {
	info, err := s.driver.Put(ctx, key, bytes.NewReader(body), int64(len(body)), opts)
	if err == nil {
		s.stats.bytesOut.Add(int64(len(body)))
	}
	return info, err
}

func withNonce(meta map[string]string, nonce string) map[string]string {
	out := make(map[string]string, len(meta)+1)
	maps.Copy(out, meta)
	out[MetaNonce] = nonce
	return out
}
