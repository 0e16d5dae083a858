package fsstore

import (
	"path/filepath"
	"strings"
)

// pieceSize keeps a piece and its suffix well within the 255 bytes of a name.
const pieceSize = 200

// objectPath is the file of key.
func (d *Driver) objectPath(key string) string {
	return d.dirPath(key) + "@"
}

// dirPath is the directory of the keys that begin with segments and a slash. It
// is the root for "".
func (d *Driver) dirPath(segments string) string {
	var b strings.Builder
	b.WriteString(d.root)
	if segments == "" {
		return b.String()
	}
	for seg := range strings.SplitSeq(segments, "/") {
		for _, piece := range pieces(escape(seg)) {
			b.WriteByte(filepath.Separator)
			b.WriteString(piece)
		}
	}
	return b.String()
}

// escape marks upper case, so that names differ in more than case.
func escape(seg string) string {
	var b strings.Builder
	for i := range len(seg) {
		c := seg[i]
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('%')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// pieces cuts an escaped segment into file names; all but the last end in "+".
func pieces(name string) []string {
	var out []string
	for len(name) > pieceSize {
		cut := pieceSize
		if len(name)-cut < len("..x") {
			cut -= len("..x") // the last piece may be a directory's name: never "." or ".."
		}
		if name[cut-1] == '%' {
			cut--
		}
		out = append(out, name[:cut]+"+")
		name = name[cut:]
	}
	return append(out, name)
}

// unescape is the inverse of escape; ok is false for a name that escape cannot
// have formed (a foreign file).
func unescape(name string) (seg string, ok bool) {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '%' {
			if i++; i == len(name) || name[i] < 'a' || name[i] > 'z' {
				return "", false
			}
			b = append(b, name[i]-('a'-'A'))
			continue
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("._~=-", c) < 0 {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), len(b) > 0
}

// entryKey is what a directory entry adds to the keys under it: a name, a name
// and a slash, or a piece of a name. ok is false for what is not of the bucket.
func entryKey(name string, dir bool) (add string, ok bool) {
	if !dir {
		name, ok = strings.CutSuffix(name, "@")
		if !ok {
			return "", false
		}
		return unescape(name)
	}
	if piece, cut := strings.CutSuffix(name, "+"); cut {
		return unescape(piece)
	}
	add, ok = unescape(name)
	return add + "/", ok
}
