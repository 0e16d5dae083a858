package objstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set is the buckets of one class: the first decides (create-once and HEADs go
// there), the others hold copies of what stands there.
type Set []*Store

// Classes maps a storage class to its buckets.
type Classes map[string]Set

// Set returns the buckets of class.
func (c Classes) Set(class string) (Set, error) {
	if set := c[class]; len(set) > 0 {
		return set, nil
	}
	return nil, &Error{Op: "look up class", Key: class, Kind: ErrInvalid, Err: fmt.Errorf(
		"no bucket is configured for it (known: %s): pass --store %s=URL",
		strings.Join(slices.Sorted(maps.Keys(c)), ", "), class)}
}

// First is the bucket that decides.
func (s Set) First() *Store { return s[0] }

// Delete removes keys from every bucket of the set. A key is gone when it is gone
// everywhere; results and error are as in Store.Delete.
func (s Set) Delete(ctx context.Context, keys []string) ([]DeleteResult, error) {
	out := make([]DeleteResult, len(keys))
	for i, key := range keys {
		out[i].Key = key
	}
	if len(s) == 0 {
		return nil, &Error{Op: "delete", Key: "set", Kind: ErrInvalid, Err: errors.New("a set without buckets")}
	}
	var ended error
	for _, store := range s {
		results, err := store.Delete(ctx, keys)
		ended = errors.Join(ended, err)
		for i, r := range results {
			out[i].Err = errors.Join(out[i].Err, r.Err)
		}
	}
	return out, ended
}
