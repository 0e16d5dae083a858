package segment

// The limits of the formats. They are part of the format: a decoder refuses
// what is beyond them.
const (
	// MaxFrameBytes caps a frame's payload, so that a reader's buffer is bounded
	// whatever a damaged length says.
	MaxFrameBytes = 16 << 20
	// MinSegmentBytes leaves room for one largest frame, so that the bytes not
	// yet flushed stay within two segments.
	MinSegmentBytes = 17 << 20
	// MaxSegmentBytes keeps every offset of a segment, and the end of the last
	// frame, within the u32 of a frame's synced field.
	MaxSegmentBytes = 2 << 30

	// HeaderBytes is the length of a segment file's header.
	HeaderBytes = 24
	// FrameHeaderBytes is the length of a frame's header.
	FrameHeaderBytes = 20
	// TrailerBytes is the length of an object's trailer.
	TrailerBytes = 48

	// MaxStreamName bounds a stream's name: escaped threefold it is replaced by a
	// hash, so that no path segment of a key passes 255 bytes.
	MaxStreamName = 200
	// MaxConsumerName and MaxProducerName bound the names that every
	// SegmentStart repeats: 10,000 of each fit one frame.
	MaxConsumerName = 200
	MaxProducerName = 200
	// MaxConsumers is how many durable consumers a chain may have.
	MaxConsumers = 10_000
	// MaxProducers is how many idempotent producers a chain remembers; the least
	// recently used are forgotten first.
	MaxProducers = 10_000
	// MaxHeadBytes bounds a chain head: 10,000 consumers of 200 bytes, escaped.
	MaxHeadBytes = 16 << 20
	// MaxWriterVersion bounds the free text that names an object's writer.
	MaxWriterVersion = 200

	// ChunkStoredTarget is the stored size that a chunk aims at: large enough to
	// range-copy (5 MiB and more), small enough to fetch in parallel.
	ChunkStoredTarget = 8 << 20
	// ChunkRawMax caps what one chunk decompresses to, and with it the memory of
	// every reader and mover.
	ChunkRawMax = 64 << 20
	// TailBytes is what a reader fetches first of an object: the trailer and
	// usually the whole footer.
	TailBytes = 64 << 10
	// TornKeepMax caps what recovery keeps aside of a cut tail: one largest frame
	// and change.
	TornKeepMax = MinSegmentBytes
)
