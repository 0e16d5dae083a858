package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/strandline/strandline/objstore"
)

func frames(key, etag string, off int64, body []byte) []byte {
	var out bytes.Buffer
	w := Writer{W: &out, Seed: Seed(key, etag), Off: off}
	// In pieces as an instance sends them: to the next MiB.
	for at := off; at < off+int64(len(body)); {
		end := min((at>>20+1)<<20, off+int64(len(body)))
		_, _ = w.Write(body[at-off : end-off]) // a buffer takes everything
		at = end
	}
	return out.Bytes()
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func TestFramesRoundTrip(t *testing.T) {
	for _, off := range []int64{0, 1, FrameBytes - 1, FrameBytes, 3<<20 + 5} {
		for _, n := range []int{0, 1, 1000, FrameBytes, FrameBytes + 1, 3 << 20} {
			body := random(n)
			b := frames("k", "e", off, body)
			if int64(len(b)) != Length(off, off+int64(n)) {
				t.Errorf("%d bytes at %d: %d on the wire, Length says %d", n, off, len(b), Length(off, off+int64(n)))
			}
			for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader} {
				got, err := io.ReadAll(wrap(&Reader{R: bytes.NewReader(b), Seed: Seed("k", "e"), Off: off, End: off + int64(n)}))
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("%s: %d bytes at %d: %d came, %v", name, n, off, len(got), err)
				}
			}
			big := make([]byte, n)
			if _, err := io.ReadFull(&Reader{R: iotest.OneByteReader(bytes.NewReader(b)), Seed: Seed("k", "e"), Off: off, End: off + int64(n)}, big); n < 2000 && (err != nil || !bytes.Equal(big, body)) {
				t.Errorf("%d bytes at %d into place: %v", n, off, err)
			}
		}
	}
}

// Whatever is wrong about a body, no byte of it is given that is not the object's.
func TestFramesThatAreWrong(t *testing.T) {
	body := random(2*FrameBytes + 100)
	good := frames("k", "e", 0, body)
	end := int64(len(body))
	at := func(i int) []byte { b := bytes.Clone(good); b[i] ^= 1; return b }
	for name, r := range map[string]Reader{
		"length":         {R: bytes.NewReader(at(0)), Seed: Seed("k", "e"), End: end},
		"checksum":       {R: bytes.NewReader(at(5)), Seed: Seed("k", "e"), End: end},
		"byte":           {R: bytes.NewReader(at(100)), Seed: Seed("k", "e"), End: end},
		"last byte":      {R: bytes.NewReader(at(len(good) - 1)), Seed: Seed("k", "e"), End: end},
		"cut":            {R: bytes.NewReader(good[:len(good)-1]), Seed: Seed("k", "e"), End: end},
		"cut at a frame": {R: bytes.NewReader(good[:8+FrameBytes]), Seed: Seed("k", "e"), End: end},
		"nothing":        {R: strings.NewReader(""), Seed: Seed("k", "e"), End: end},
		"another key":    {R: bytes.NewReader(good), Seed: Seed("k2", "e"), End: end},
		"another etag":   {R: bytes.NewReader(good), Seed: Seed("k", "f"), End: end},
		"moved":          {R: bytes.NewReader(good), Seed: Seed("k", "e"), Off: FrameBytes, End: end + FrameBytes},
	} {
		got, err := io.ReadAll(&r)
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(body, got) {
			t.Errorf("%s: bytes came that are not the object's", name)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frames("k", "e", 7, random(300)), int64(7), int64(307))
	f.Fuzz(func(t *testing.T, b []byte, off, end int64) {
		if off < 0 || end < off || end-off > 1<<20 {
			return
		}
		got, err := io.ReadAll(&Reader{R: bytes.NewReader(b), Seed: Seed("k", "e"), Off: off, End: end})
		if err == nil && int64(len(got)) != end-off {
			t.Fatalf("%d bytes of %d and no error", len(got), end-off)
		}
	})
}

func TestObjectRoundTrip(t *testing.T) {
	in := objstore.Info{Key: "k", Size: 1 << 40, ETag: `a"b-3`, Modified: time.Unix(1, 999_999_999), Meta: map[string]string{"n": "v w"}}
	out, err := DecodeObject("k", EncodeObject(in))
	if err != nil || out.Size != in.Size || out.ETag != in.ETag || !out.Modified.Equal(in.Modified) || out.Meta["n"] != "v w" {
		t.Errorf("%+v, %v", out, err)
	}
	for _, bad := range []string{"", "{}", `{"key":"k","size":-1,"etag":"e"}`, `{"key":"k","size":1}`, `{"key":"j","size":1,"etag":"e"}`, "["} {
		if _, err := DecodeObject("k", bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, info := range []objstore.Info{{Size: 1}, {Size: -1, ETag: "e"}, {ETag: "é"}, {ETag: "e", Meta: map[string]string{"a": "\n"}}} {
		if Faithful(info) {
			t.Errorf("%+v does not fit a header", info)
		}
	}
}

func TestFates(t *testing.T) {
	for _, kind := range []error{objstore.ErrAmbiguous, objstore.ErrConflict, objstore.ErrDenied, objstore.ErrInvalid, objstore.ErrUnsupported, objstore.ErrCorrupt, objstore.ErrNoSpace, objstore.ErrUnavailable} {
		f := FateOf(objstore.DeleteResult{Key: "k", Err: &objstore.Error{Op: "delete", Key: "k", Kind: kind}})
		if err := f.Err(); !errors.Is(err, kind) {
			t.Errorf("%v came out as %v", kind, err)
		}
	}
	if err := FateOf(objstore.DeleteResult{Key: "k"}).Err(); err != nil {
		t.Error(err)
	}
	for _, f := range []Fate{FateOf(objstore.DeleteResult{Key: "k", Err: errors.New("odd")}), {Key: "k", Kind: "of a newer build"}} {
		if !errors.Is(f.Err(), objstore.ErrAmbiguous) {
			t.Errorf("%+v: what is not known is not known to be undone: %v", f, f.Err())
		}
	}
}

func TestBucket(t *testing.T) {
	at := time.Unix(1000, 0)
	if a, b := Bucket("d", "express", at, "s3://a", true), Bucket("d", "express", at.Add(time.Millisecond), "s3://b", true); a != b {
		t.Error("one bucket by two URLs is one")
	}
	if a, b := Bucket("d", "express", at, "s3://a", false), Bucket("d", "express", at, "s3://b", false); a == b {
		t.Error("two buckets of a set are two")
	}
	if a, b := Bucket("d", "express", at, "s3://a", true), Bucket("d", "express", at.Add(time.Hour), "s3://a", true); a == b {
		t.Error("a bucket and its copy are two")
	}
	if a, b := Bucket("d", "express", at, "file:///a", true), Bucket("d", "express", at, "file:///b", true); a == b {
		t.Error("a directory and its copy are two")
	}
}
