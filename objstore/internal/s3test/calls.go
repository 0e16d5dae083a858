//go:build unix

package s3test

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/objstore"
)

// call is one driver call on the key "a/key", for tests that go through all of them.
type call struct {
	name     string
	mutation bool
	document bool // its success is an XML document
	do       func(ctx context.Context, d objstore.Driver) error
}

const key = "a/key"

var twoParts = []objstore.Part{{Number: 1, ETag: "e1", Size: 5 << 20}, {Number: 2, ETag: "e2", Size: 1}}

func calls() []call {
	body := func() io.ReadSeeker { return bytes.NewReader([]byte("hello")) }
	once := objstore.PutOptions{IfNoneMatch: true}
	return []call{
		{"put", true, false, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.Put(ctx, key, body(), 5, once)
			return err
		}},
		{"delete", true, true, deleteOne},
		{"create upload", true, true, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.CreateUpload(ctx, key, nil)
			return err
		}},
		{"upload part", true, false, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.UploadPart(ctx, key, "id", 1, body(), 5)
			return err
		}},
		{"copy part", true, true, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.CopyPart(ctx, key, "id", 1, objstore.CopySource{Key: "a/source", ETag: "e0", Offset: 7, Length: 100})
			return err
		}},
		{"complete", true, true, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.Complete(ctx, key, "id", twoParts, once)
			return err
		}},
		{"abort", true, false, func(ctx context.Context, d objstore.Driver) error {
			return d.Abort(ctx, key, "id")
		}},
		{"get", false, false, func(ctx context.Context, d objstore.Driver) error {
			_, err := readAll(ctx, d, objstore.Whole)
			return err
		}},
		{"get range", false, false, func(ctx context.Context, d objstore.Driver) error {
			_, err := readAll(ctx, d, objstore.Range{Offset: 3, Length: 4})
			return err
		}},
		{"head", false, false, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.Head(ctx, key)
			return err
		}},
		{"list", false, true, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.List(ctx, "a/", "", "", 1000)
			return err
		}},
		{"list uploads", false, true, func(ctx context.Context, d objstore.Driver) error {
			_, err := d.ListUploads(ctx, "a/")
			return err
		}},
	}
}

// deleteOne is the fate of one key, whether the call failed or the key did.
func deleteOne(ctx context.Context, d objstore.Driver) error {
	results, err := d.Delete(ctx, []string{key})
	if err != nil {
		return err
	}
	if len(results) != 1 || results[0].Key != key {
		return errors.New("not one result for one key")
	}
	return results[0].Err
}

func readAll(ctx context.Context, d objstore.Driver, r objstore.Range) ([]byte, error) {
	body, _, err := d.Get(ctx, key, r, "")
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}

// byOutcome picks the kind for an answer that leaves open what happened.
func byOutcome(c call) error {
	if c.mutation {
		return objstore.ErrAmbiguous
	}
	return objstore.ErrUnavailable
}
