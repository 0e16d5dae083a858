package segment

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// tailOf reads an object's last bytes as a store does, and counts the reads.
func tailOf(obj []byte, reads *int) func(n int64) ([]byte, int64, error) {
	return func(n int64) ([]byte, int64, error) {
		*reads++
		size := int64(len(obj))
		return obj[size-min(n, size):], size, nil
	}
}

// slotOf has a footer of about 30 bytes a stream.
func slotOf(t testing.TB, streams int) []byte {
	seg := newBuilder(t, uuidOf(1), plainStart())
	for i := range streams {
		seg.batch(fmt.Sprintf("tenant-%08d", i), Row{Time: int64(1e18), Payload: []byte("0123456789")})
	}
	obj, _ := bundle(t, seg.seal(), BundleOptions{})
	return obj
}

func TestReadFooter(t *testing.T) {
	for _, c := range []struct{ streams, reads int }{{2, 1}, {10_000, 2}} {
		obj, reads := slotOf(t, c.streams), 0
		f, err := ReadFooter(tailOf(obj, &reads))
		if err != nil || len(f.Chunks) != c.streams+1 || reads != c.reads {
			t.Errorf("%d streams: %d reads (want %d), %v", c.streams, reads, c.reads, err)
		}
	}
}

// TestReadFooterFaults: a verdict on the object only from bytes that were read whole.
func TestReadFooterFaults(t *testing.T) {
	small, large := slotOf(t, 2), slotOf(t, 10_000)
	fault := errors.New("store is away")
	reads := 0
	whole := func(obj []byte) func(int64) ([]byte, int64, error) { reads = 0; return tailOf(obj, &reads) }
	second := func(tail []byte, size int64, err error) func(int64) ([]byte, int64, error) {
		first := whole(large)
		return func(n int64) ([]byte, int64, error) {
			if n == TailBytes {
				return first(n)
			}
			return tail, size, err
		}
	}
	flipped := bytes.Clone(small)
	flipped[len(flipped)-TrailerBytes-1] ^= 1
	for _, c := range []struct {
		what    string
		read    func(int64) ([]byte, int64, error)
		want    error
		verdict bool
	}{
		{"fault", func(int64) ([]byte, int64, error) { return nil, 0, fault }, fault, false},
		{"fault with bytes", func(int64) ([]byte, int64, error) { return small, int64(len(small)), fault }, fault, false},
		{"fault at the second read", second(nil, 0, fault), fault, false},
		{"came short", func(int64) ([]byte, int64, error) { return small[1:], int64(len(small)), nil }, ErrTailRead, false},
		{"nothing came", func(int64) ([]byte, int64, error) { return nil, 5000, nil }, ErrTailRead, false},
		{"more than asked", func(int64) ([]byte, int64, error) { return large, int64(len(large)), nil }, ErrTailRead, false},
		{"more than there is", func(int64) ([]byte, int64, error) { return small, int64(len(small)) - 1, nil }, ErrTailRead, false},
		{"short at the second read", second(large[len(large)-TailBytes:], int64(len(large)), nil), ErrTailRead, false},
		{"another object at the second read", second(small, int64(len(small)), nil), ErrTailRead, false},
		{"empty", whole(nil), ErrShortObject, true},
		{"shorter than a trailer", whole(small[:TrailerBytes-1]), ErrShortObject, true},
		{"a tail cut off", whole(small[:len(small)-1]), ErrCorrupt, true},
		{"a flipped bit", whole(flipped), ErrCorrupt, true},
	} {
		f, err := ReadFooter(c.read)
		if f != nil || !errors.Is(err, c.want) || IsStructural(err) != c.verdict {
			t.Errorf("%s: %v, %v; want %v, a verdict: %t", c.what, f, err, c.want, c.verdict)
		}
	}
}
