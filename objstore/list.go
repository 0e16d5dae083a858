package objstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// pageSize is the most that S3 gives in one answer.
const pageSize = 1000

// List yields the objects whose keys begin with prefix and are greater than
// startAfter, page after page.
//
// What a caller may rely on: an object that stood before the listing began and was not
// deleted until its end is yielded, once. One that came or went meanwhile may be. The
// order is bytewise by key if Capabilities.OrderedList says so, and any other if not
// (K39): then the first object is not the least, nothing is known of what lies before
// or after a key, and a listing that was left early says nothing about what is absent.
// Whoever needs order takes ListSorted. Whether a known key stands is asked of Head.
//
// A prefix may end anywhere, also where the store lists whole directories only
// (Capabilities.DirectoryPrefix): the deepest directory of the prefix is listed then,
// and paid for, and the rest is left out here.
//
// An error is yielded last: what came before it is then not the whole listing, and
// nothing may be concluded from what it lacks.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := errors.Join(checkPrefix(string(OpList), prefix), checkPrefix(string(OpList), startAfter)); err != nil {
			yield(Info{}, err)
			return
		}
		asked := s.listable(prefix)
		for token := ""; ; {
			page, err := s.page(ctx, asked, startAfter, token)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range page.Objects {
				if o.Key <= startAfter && startAfter != "" {
					continue // a store without Capabilities.StartAfter
				}
				if !strings.HasPrefix(o.Key, prefix) {
					continue // in the directory, and not under the prefix
				}
				if !yield(o, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			token = page.Next
		}
	}
}

// listable is what the store can be asked for to list a prefix.
func (s *Store) listable(prefix string) string {
	if !s.Capabilities().DirectoryPrefix {
		return prefix
	}
	return prefix[:strings.LastIndexByte(prefix, '/')+1]
}

func (s *Store) page(ctx context.Context, prefix, startAfter, token string) (Page, error) {
	var page Page
	err := s.retry(ctx, OpList, prefix, func(ctx context.Context) (err error) {
		page, err = s.driver.List(ctx, prefix, startAfter, token, pageSize)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	if page.Next != "" && page.Next == token {
		return Page{}, &Error{Op: "list", Key: prefix, Kind: ErrCorrupt, Err: errors.New("the store's continuation token does not advance")}
	}
	for _, o := range page.Objects {
		if !strings.HasPrefix(o.Key, prefix) { // K38
			return Page{}, &Error{Op: "list", Key: prefix, Kind: ErrCorrupt, Err: fmt.Errorf("the store listed %q", o.Key)}
		}
	}
	return page, nil
}

// ListUploads returns the unfinished uploads under prefix, as far as the store
// shows them: see Capabilities.ListUploads before concluding from absence.
func (s *Store) ListUploads(ctx context.Context, prefix string) ([]Upload, error) {
	if err := checkPrefix(string(OpListUploads), prefix); err != nil {
		return nil, err
	}
	asked := s.listable(prefix)
	var ups []Upload
	err := s.retry(ctx, OpListUploads, prefix, func(ctx context.Context) (err error) {
		ups, err = s.driver.ListUploads(ctx, asked)
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ups, func(u Upload) bool { return !strings.HasPrefix(u.Key, prefix) }), nil
}
