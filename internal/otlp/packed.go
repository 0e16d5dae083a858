package otlp

import (
	"bytes"
	"io"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
)

// asItCame is a gRPC server's gzip that leaves messages packed. grpc would unpack each as soon
// as it is there: a megabyte on the wire, and all calls together have a gigabyte in memory
// before the first is counted. rawCodec unpacks them within the memory of all.
type asItCame struct{}

func (asItCame) Type() string                    { return gzip.Name }
func (asItCame) Do(in io.Reader) ([]byte, error) { return io.ReadAll(in) }

// packedMagic begins what gzip packs, and no protobuf message: its tag has no such wire type.
var packedMagic = []byte{0x1f, 0x8b}

// maxCheckBytes is far more than a health check says.
const maxCheckBytes = 64 << 10

// raw is a message as it is on the wire, less its packing.
type raw struct {
	body []byte
	// mine is what a message that comes in counts against; refused is why it was not taken,
	// and body is empty then.
	mine    *share
	refused error
}

// fill takes a message, in one piece.
func (m *raw) fill(data mem.BufferSlice) ([]byte, error) {
	in := data.Reader()
	defer func() { _ = in.Close() }() // it only gives the buffers back
	head := make([]byte, len(packedMagic))
	n, _ := io.ReadFull(in, head) //nolint:errcheck // a shorter message is not packed
	whole := io.MultiReader(bytes.NewReader(head[:n]), in)
	if !bytes.Equal(head[:n], packedMagic) {
		return readPart(whole, int64(data.Len())+1, m.mine) // so that its end is seen without growing
	}
	unpacked, err := decompressor([]string{gzip.Name}, whole)
	if err != nil {
		return nil, err
	}
	return readPart(unpacked, firstRead, m.mine)
}

// rawCodec passes raw messages through, and all others to the usual codec.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*raw); ok {
		return mem.BufferSlice{mem.SliceBuffer(m.body)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*raw); ok {
		m.body, m.refused = m.fill(data)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
