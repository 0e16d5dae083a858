package objstore

import (
	"fmt"
	"strings"
)

const (
	// maxKey is S3's limit on a key.
	maxKey = 1024
	// maxSegment is what both measured servers and most file systems hold.
	maxSegment = 255
)

// CheckKey refuses keys that some store would alter, alias or hide: anything but
// segments of [A-Za-z0-9._~=-], 1 to 255 bytes each, none of them "." or "..",
// joined by single slashes, 1,024 bytes in all.
func CheckKey(key string) error {
	if why := badKey(key); why != "" {
		return &Error{Op: "check key", Key: fmt.Sprintf("%.80q", key), Kind: ErrInvalid, Err: fmt.Errorf(
			"%s: form keys in package segment only", why)}
	}
	return nil
}

func badKey(key string) string {
	if len(key) == 0 {
		return "empty"
	}
	if len(key) > maxKey {
		return fmt.Sprintf("%d bytes, the most is %d", len(key), maxKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "":
			return "an empty segment"
		case part == "." || part == "..":
			return "a dot segment"
		case len(part) > maxSegment:
			return fmt.Sprintf("a segment of %d bytes, the most is %d", len(part), maxSegment)
		}
	}
	return badBytes(key)
}

// checkPrefix holds listing prefixes to the alphabet; they may end anywhere.
func checkPrefix(op, prefix string) error {
	why := badBytes(prefix)
	if len(prefix) > maxKey {
		why = "too long"
	}
	if why != "" {
		return &Error{Op: op, Key: fmt.Sprintf("%.80q", prefix), Kind: ErrInvalid, Err: fmt.Errorf("prefix: %s", why)}
	}
	return nil
}

func badBytes(s string) string {
	for i := range len(s) {
		if !keyByte(s[i]) {
			return fmt.Sprintf("byte %q at %d", s[i], i)
		}
	}
	return ""
}

func keyByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("._~=-/", c) >= 0
}
