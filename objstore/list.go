package objstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// pageSize is the most that S3 gives in one answer.
const pageSize = 1000

// List yields the objects whose keys begin with prefix and are greater than
// startAfter, page after page, in the store's order (Capabilities.OrderedList).
// An error is yielded last: what came before it is then not the whole listing,
// and nothing may be concluded from what it lacks.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := errors.Join(checkPrefix("list", prefix), checkPrefix("list", startAfter)); err != nil {
			yield(Info{}, err)
			return
		}
		for token := ""; ; {
			page, err := s.page(ctx, prefix, startAfter, token)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range page.Objects {
				if o.Key <= startAfter && startAfter != "" {
					continue // a store without Capabilities.StartAfter
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
	if err := checkPrefix("list uploads", prefix); err != nil {
		return nil, err
	}
	var ups []Upload
	err := s.retry(ctx, OpListUploads, prefix, func(ctx context.Context) (err error) {
		ups, err = s.driver.ListUploads(ctx, prefix)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ups, nil
}
