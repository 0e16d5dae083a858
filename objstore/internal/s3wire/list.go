package s3wire

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"time"

	"github.com/strandline/strandline/objstore"
)

type listDocument struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		Size         int64
		ETag         string
		LastModified time.Time
	}
}

// CheckList refuses pages that S3 does not have.
func CheckList(prefix string, limit int) error {
	if limit < 1 || limit > MaxList {
		return Invalid(objstore.OpList, prefix, fmt.Errorf("a page of %d keys: from 1 to %d", limit, MaxList))
	}
	return nil
}

// Page is one page of a listing as it stands in the answer.
type Page struct {
	Objects []objstore.Info // keys stripped of the prefix
	Token   string          // continues the listing; "" at the end
}

// ReadPage decodes a listing. A page that says there is more and not where is
// refused: taken for the end, it would hide objects.
func ReadPage(ex *Exchange, prefix string, space Space) (Page, error) {
	unreadable := func(err error) error {
		return &objstore.Error{Op: string(objstore.OpList), Key: prefix, Kind: objstore.ErrUnavailable, Err: fmt.Errorf("reading the listing: %w", err)}
	}
	var doc listDocument
	if err := xml.Unmarshal(ex.Document(), &doc); err != nil {
		return Page{}, unreadable(err)
	}
	page := Page{Objects: make([]objstore.Info, 0, len(doc.Contents))}
	for _, c := range doc.Contents {
		key := c.Key
		if doc.EncodingType == "url" {
			decoded, err := url.QueryUnescape(key)
			if err != nil {
				return Page{}, unreadable(err)
			}
			key = decoded
		}
		page.Objects = append(page.Objects, objstore.Info{
			Key: space.Strip(key), Size: c.Size, ETag: ETag(c.ETag), Modified: c.LastModified.In(time.UTC),
		})
	}
	if doc.IsTruncated {
		if doc.NextContinuationToken == "" {
			return Page{}, unreadable(fmt.Errorf("it is cut and names no continuation"))
		}
		page.Token = doc.NextContinuationToken
	}
	return page, nil
}
