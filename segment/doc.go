// Package segment is bytes and names: the typed ids, the frames of a segment
// file, the object container (slots, stream objects, packs), the sidecars, the
// bucket's records, and every key. It does no I/O of its own: it works on byte
// slices, io.ReaderAt and io.Writer, so that the writer, the auditor, the
// reader and the verifier share one understanding of every byte.
//
//	segment file   header 24 B | frame | frame | … | Seal frame
//	frame          header 20 B | payload
//	object         chunk | chunk | … | footer | trailer 48 B
//	chunk          batch frames, verbatim from segments, maybe zstd
//
// Rules that hold for everything here:
//
//   - Integers are little-endian, CRC is CRC-32C, digests are XxHash64 seed 0.
//   - Every format carries a version; what is unknown or reserved is an error
//     that says where it stands and what was found.
//   - A decoder never panics and never allocates more than its input justifies.
//   - Bytes that were read whole and are wrong give an error for which
//     IsStructural holds. An I/O error passes through unchanged and is never a
//     verdict about the bytes.
//
// Files by subject:
//
//	ids and names    id.go, token.go, affinity.go (stream -> shard), name.go, key.go and
//	                 keyparse.go (names in the bucket)
//	a segment        header.go, frame.go, batch.go, start.go, control.go, producers.go
//	reading it back  scan.go, recover.go, headless.go
//	a slot           bundle.go, bundleplan.go, restore.go: a permutation of its segment
//	the container    object.go, chunk.go, cut.go, ordinals.go, tally.go, footer.go,
//	                 footercodec.go, trailer.go, tail.go, meta.go
//	documents        document.go, sidecar.go, record.go: small ones
//	beneath          codec.go, crc.go, zstd.go, limits.go, errors.go
//	for people       inspect.go, inspectobject.go
//
// docs/formats.md has the tables of bytes.
//
// What it does not do: open, sync or name files on disk, talk to a store,
// decide what is live.
package segment
