package segment

import (
	"encoding/binary"

	"github.com/klauspost/crc32"
)

// castagnoli is a constant table; nothing writes to it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crcUpdate(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

// kindCRCs are the CRCs of each kind and the pad of three zeros behind it. A constant
// table; nothing writes to it.
var kindCRCs = func() (t [KindConsumerRemove + 1]uint32) {
	for k := range t {
		t[k] = crcUpdate(0, []byte{byte(k), 0, 0, 0})
	}
	return t
}()

// payloadCRC covers kind, pad and payload. In a segment the header CRC covers
// kind and pad too; in a chunk nothing else does.
func payloadCRC(header, payload []byte) uint32 {
	if k := header[4]; int(k) < len(kindCRCs) && header[5]|header[6]|header[7] == 0 {
		return crcUpdate(kindCRCs[k], payload)
	}
	return crcUpdate(crcUpdate(0, header[4:8]), payload)
}

// headerCRC covers the first 16 bytes of a frame's header, the segment's UUID
// and the frame's offset, so that a frame which is somebody's payload, stands
// elsewhere or belongs to another segment never validates.
//
// The UUID and the offset go through the table byte by byte: slices of them
// would escape through the indirect call in crc32.Update and cost an
// allocation a frame.
func headerCRC(header []byte, u UUID, off int64) uint32 {
	return placeCRC(crcUpdate(0, header[:16]), u, off)
}

func placeCRC(crc uint32, u UUID, off int64) uint32 {
	crc = ^crc
	for _, b := range u {
		crc = castagnoli[byte(crc)^b] ^ crc>>8
	}
	for i, v := 0, uint64(off); i < 8; i, v = i+1, v>>8 {
		crc = castagnoli[byte(crc)^byte(v)] ^ crc>>8
	}
	return ^crc
}

var le = binary.LittleEndian
