package doctor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// trial is what one try of a check works with.
type trial struct {
	*session
	dir    string // its keys stand under it; ends in "/"
	detail string // said of a check that went well
}

// once is the condition of a create-once write.
var once = objstore.PutOptions{IfNoneMatch: true}

// neverETag is the ETag of no object: its hex digits are those of an MD5, so that no
// store takes it for a malformed one.
const neverETag = "00000000000000000000000000000000"

func (t *trial) key(name string) string { return t.dir + name }

// make writes an object whose key nobody else has. It goes without a condition: a store
// that refuses conditions is to fail in their checks, and only there.
func (s *session) make(ctx context.Context, key string, body []byte) (objstore.Info, error) {
	return s.put(ctx, key, body, objstore.PutOptions{})
}

func (s *session) put(ctx context.Context, key string, body []byte, opts objstore.PutOptions) (objstore.Info, error) {
	return s.d.Put(ctx, key, bytes.NewReader(body), int64(len(body)), opts)
}

// read gives the bytes of a range.
func (s *session) read(ctx context.Context, key string, r objstore.Range, ifMatch string) ([]byte, objstore.Info, error) {
	body, info, err := s.d.Get(ctx, key, r, ifMatch)
	if err != nil {
		return nil, info, err
	}
	got, err := io.ReadAll(body)
	return got, info, errors.Join(err, body.Close())
}

// holds wants an object to be these bytes; otherwise is what it means if not.
func (s *session) holds(ctx context.Context, key string, want []byte, otherwise string) error {
	got, _, err := s.read(ctx, key, objstore.Whole, "")
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return lies("%s: the object is gone", otherwise)
	case err != nil:
		return err
	case !bytes.Equal(got, want):
		return lies("%s", otherwise)
	}
	return nil
}

// upload begins an upload of one part.
func (s *session) upload(ctx context.Context, key string, body []byte, meta map[string]string) (id string, parts []objstore.Part, err error) {
	if id, err = s.d.CreateUpload(ctx, key, meta); err != nil {
		return "", nil, err
	}
	part, err := s.d.UploadPart(ctx, key, id, 1, bytes.NewReader(body), int64(len(body)))
	return id, []objstore.Part{part}, err
}

// remove deletes one key.
func (s *session) remove(ctx context.Context, key string) error {
	results, err := s.d.Delete(ctx, []string{key})
	switch {
	case err != nil:
		return err
	case len(results) != 1:
		return lies("deleting one key, the driver speaks of %d", len(results))
	}
	return results[0].Err
}

// listed gives a whole listing, in the order in which it came. The pages are bounded: a
// listing that does not move on must not hold the doctor.
func (s *session) listed(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	const maxPages = 100
	var all []objstore.Info
	token := ""
	for range maxPages {
		page, err := s.d.List(ctx, prefix, after, token, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Objects...)
		if token = page.Next; token == "" {
			return all, nil
		}
	}
	return nil, lies("the listing of %d keys has no end after %d pages", len(all), maxPages)
}

// uploadsOf lists the unfinished uploads of what begins with a key: by the key itself, or
// by its directory where only those are listed.
func (s *session) uploadsOf(ctx context.Context, key string) ([]objstore.Upload, error) {
	asked := key
	if s.d.Capabilities().DirectoryPrefix {
		asked = key[:strings.LastIndexByte(key, '/')+1]
	}
	found, err := s.d.ListUploads(ctx, asked)
	return slices.DeleteFunc(found, func(u objstore.Upload) bool { return !strings.HasPrefix(u.Key, key) }), err
}

func keysOf(list []objstore.Info) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Key
	}
	return out
}

// winnerOf is the one racer that won. unclear are the ends that say neither won nor lost:
// one of those may have been the winner of a race that seems to have none.
func winnerOf(errs []error) (winner int, unclear, err error) {
	winner = -1
	won := 0
	for i, e := range errs {
		switch {
		case e == nil:
			winner = i
			won++
		case errors.Is(e, objstore.ErrExists), errors.Is(e, objstore.ErrConflict):
			// lost: some stores say so with a conflict
		default:
			unclear = errors.Join(unclear, e)
		}
	}
	switch {
	case won > 1:
		err = lies("%d of %d racers were told that they won", won, len(errs))
	case won == 0 && unclear == nil:
		err = errors.New("nobody won, and nothing says why")
	case won == 0:
		err = unclear
	}
	return winner, unclear, err
}

// theirs wants the object of a race to be the winner's.
func (t *trial) theirs(ctx context.Context, key string, errs []error, body func(i int) []byte) error {
	winner, unclear, err := winnerOf(errs)
	if err != nil {
		return err
	}
	err = t.holds(ctx, key, body(winner), "the object is not that of the racer who was told that it won")
	if err != nil && unclear != nil {
		return unclear // it may be that of a racer whose answer was lost
	}
	return err
}

// named is a body that tells its writer.
func named(i int) []byte { return []byte("racer " + strconv.Itoa(i)) }

// noise is n bytes that look alike nowhere, so that a wrong range shows.
func noise(n int64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails, by its documentation
	return b
}
