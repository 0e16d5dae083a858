//go:build unix

package s3test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// findingsOfReads: what ranges and conditions on reads do.
func findingsOfReads() []finding {
	get := func(body, ranges string) func(*lab) string {
		return func(l *lab) string {
			l.must(l.bare.put(l.key("k"), body, cond{}))
			got, said := l.bare.get(l.key("k"), ranges, cond{})
			return strings.TrimSpace(said + " " + got)
		}
	}
	return []finding{
		{name: "a suffix names the object's size", see: get("0123456789", "bytes=-3"), want: same("ok 789 7-9/10")},
		{name: "a suffix longer than the object is all of it", see: get("0123456789", "bytes=-99"), want: same("ok 0123456789 0-9/10")},
		{name: "a suffix of an empty object", see: get("", "bytes=-5"), want: each("ok 0--1/0", "ok")},
		{name: "a range that begins at the end is 416", see: get("0123456789", "bytes=10-12"), want: same("416 InvalidRange")},
		{name: "a suffix of no bytes is 416", see: get("0123456789", "bytes=-0"), want: same("416 InvalidRange")},
		{name: "a range that ends before it begins", see: get("0123456789", "bytes=5-3"), want: each("416 InvalidRange", "ok 0123456789")},

		{name: "a read under another ETag is 412", see: func(l *lab) string {
			l.must(l.bare.put(l.key("k"), "x", cond{}))
			_, said := l.bare.get(l.key("k"), "", cond{match: otherETag})
			return said
		}, want: same("412 PreconditionFailed")},

		{name: "a read after each of 50 puts and deletes is not stale", see: func(l *lab) string {
			stale := 0
			for i := range 50 {
				k := l.key(fmt.Sprint("k", i))
				l.must(l.bare.put(k, "x", cond{}))
				if keys, _ := l.bare.list(k, 1); len(keys) != 1 || l.holds(k) != "holds x" {
					stale++
				}
				l.bare.deleteAll(k)
				if keys, _ := l.bare.list(k, 1); len(keys) != 0 || l.holds(k) != "404 NoSuchKey" {
					stale++
				}
			}
			return fmt.Sprint(stale, " stale")
		}, want: same("0 stale")},

		{name: "a HEAD of what is absent says 404 and no more", only: "aws-sdk", see: func(l *lab) string {
			return l.bare.head(l.key("k"))
		}, want: same("404 NotFound")},
	}
}

// findingsOfLists: order, pages, and what listings hide.
func findingsOfLists() []finding {
	return []finding{
		{name: "a listing of one key by its name gives the first that begins so", see: func(l *lab) string {
			l.must(l.bare.put(l.key("p/10"), "", cond{}))
			ten, _ := l.bare.list(l.key("p/1"), 1)
			l.must(l.bare.put(l.key("p/1"), "", cond{}))
			one, _ := l.bare.list(l.key("p/1"), 1)
			return l.bared(ten) + "; " + l.bared(one)
		}, want: same("p/10; p/1")},

		{name: "a listing is in bytewise order, also beyond the basic plane", see: func(l *lab) string {
			// In UTF-16 the second comes before the first.
			for _, k := range []string{"o/b", "o/-", "o/\uFFFD", "o/\U0001F600", "o/Z", "o/a/x", "o/a-"} {
				l.must(l.bare.put(l.key(k), "", cond{}))
			}
			keys, said := l.bare.list(l.key("o/"), 100)
			return fmt.Sprint(said, " ", len(keys), " ", slices.IsSorted(keys))
		}, want: same("ok 7 true")},

		{name: "the key of an object within another's name", see: func(l *lab) string {
			l.must(l.bare.put(l.key("p/a"), "parent", cond{}))
			_, said := l.bare.put(l.key("p/a/b"), "child", cond{})
			all, _ := l.bare.list(l.key("p/"), 100)
			return fmt.Sprintf("%s, %s, listed %s", said, l.holds(l.key("p/a/b")), l.bared(all))
		}, want: each("ok, holds child, listed p/a", "409 ObjectParentIsFile, 404 NoSuchKey, listed p/a")},

		{name: "the key of an object that is a directory of others", see: func(l *lab) string {
			l.must(l.bare.put(l.key("p/a/b"), "child", cond{}))
			_, said := l.bare.put(l.key("p/a"), "parent", cond{})
			all, _ := l.bare.list(l.key("p/"), 100)
			return fmt.Sprintf("%s, listed %s", said, l.bared(all))
		}, want: each("ok, listed p/a", "409 ExistingObjectIsDirectory, listed p/a/b")},

		{name: "the last page of a listing, when it is full", only: "aws-sdk", see: func(l *lab) string {
			for i := range 6 {
				l.must(l.bare.put(l.key(fmt.Sprint("f/", i)), "", cond{}))
			}
			pages := s3.NewListObjectsV2Paginator(l.sdk, &s3.ListObjectsV2Input{Bucket: &l.to.Bucket, Prefix: aws.String(l.key("f/")), MaxKeys: aws.Int32(3)})
			var sizes []string
			for pages.HasMorePages() {
				page, err := pages.NextPage(l.ctx)
				if err != nil {
					return saidOf(err)
				}
				sizes = append(sizes, fmt.Sprint(len(page.Contents)))
			}
			return strings.Join(sizes, " ")
		}, want: same("3 3")},

		{name: "the time of an object is told to the", only: "aws-sdk", see: func(l *lab) string {
			finer := false
			for i := range 4 { // one of a thousand is on a whole second by itself
				l.must(l.bare.put(l.key(fmt.Sprint("t", i)), "", cond{}))
			}
			got, err := l.sdk.ListObjectsV2(l.ctx, &s3.ListObjectsV2Input{Bucket: &l.to.Bucket, Prefix: aws.String(l.key("t"))})
			if err != nil {
				return saidOf(err)
			}
			for _, o := range got.Contents {
				finer = finer || o.LastModified.Nanosecond() != 0
			}
			return map[bool]string{true: "millisecond", false: "second"}[finer]
		}, want: each("millisecond", "second")},

		{name: "no read is torn by an overwrite", see: func(l *lab) string {
			const rewrites, size = 24, 256 << 10
			l.must(l.bare.put(l.key("t"), strings.Repeat("a", size), cond{}))
			return tally(8, func(i int) string {
				for n := range rewrites {
					if i < 2 {
						l.must(l.bare.put(l.key("t"), strings.Repeat(string(rune('a'+(n+i)%3)), size), cond{}))
						continue
					}
					body, said := l.bare.get(l.key("t"), "", cond{})
					if said != "ok" || len(body) != size || strings.Count(body, body[:1]) != size {
						return fmt.Sprintf("torn: %s, %d bytes", said, len(body))
					}
				}
				return "whole"
			})
		}, want: same("8 whole")},
	}
}

// bared is a list of keys without this finding's directory.
func (l *lab) bared(keys []string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = strings.TrimPrefix(k, l.dir)
	}
	return strings.Join(out, " ")
}
