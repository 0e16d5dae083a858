package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// This file is the only place where the bucket's keys are formed and parsed;
// each direction is the other's inverse. Keys are opaque to the object layer.

// The first path segment of every key tells its family.
const (
	SegPrefix      = "seg/"
	RWPrefix       = "rw/"
	MetaPrefix     = "meta/"
	TopologyPrefix = "topology/"
	TrimsPrefix    = "trims/"
	ObjPrefix      = "obj/"
	PackPrefix     = "pack/"

	// DoctorPrefix is what the throw-away keys of `strandline doctor`, `bench store` and
	// `bench auditor` begin with. A run's keys go with its end; what a killed run left, a later doctor
	// removes.
	DoctorPrefix = MetaPrefix + "doctor/"

	stampKey = MetaPrefix + "strandline"
)

// maxEscapedName is the longest escaped stream name that stands in a key as it
// is. A longer one is replaced by its hash, so that no path segment passes the
// 255 bytes that MinIO, gateways and file systems take.
const maxEscapedName = 200

// KeyKind is the family and shape of a key.
type KeyKind uint8

// The shapes this build writes. Every other key is ErrUnknownKey.
const (
	KeySlot KeyKind = iota + 1
	KeyHead
	KeyStamp
	KeyTopology
	KeyTrim
	KeyStream
	KeyPack
	KeyDoctor
)

func (k KeyKind) String() string {
	if k < KeySlot || k > KeyDoctor {
		return fmt.Sprintf("key(%d)", uint8(k))
	}
	return [...]string{"slot", "head", "stamp", "topology", "trim", "stream", "pack", "doctor"}[k-KeySlot]
}

// Key is a parsed key. Which fields count depends on Kind.
type Key struct {
	Kind       KeyKind
	Chain      Chain  // all but stamp and doctor; of a stream key and of topology only the epoch
	ID, LastID ID     // slot: ID; pack: first and last segment
	Stream     string // stream: the name, "" if the key only has its hash
	StreamHash string // stream: 32 hex digits of the name's SHA-256 if Stream is ""
	Fan        string // stream: the three hex digits its directory stands under
	First      Seq    // stream
	Revision   uint32 // stream, pack
	N          uint64 // trim
	Probe      string // doctor: all after its prefix, the run first
}

// SlotKey is where the slot at a position stands.
func SlotKey(c Chain, id ID) string { return fmt.Sprintf("%s%016x", SlotPrefix(c), uint64(id)) }

// SlotPrefix is what the keys of a chain's slots begin with. They list in the
// order of their positions.
func SlotPrefix(c Chain) string { return SegPrefix + c.String() + "." }

// HeadKey is where a chain's head stands, the only object that is ever replaced.
func HeadKey(c Chain) string { return RWPrefix + c.String() }

// StampKey is where a bucket says whose it is.
func StampKey() string { return stampKey }

// TopologyKey is where an epoch's topology stands.
func TopologyKey(e Epoch) string { return fmt.Sprintf("%s%08x", TopologyPrefix, uint32(e)) }

// TrimKey is where the n-th trim record of a chain stands.
func TrimKey(c Chain, n uint64) string { return fmt.Sprintf("%s%016x", TrimPrefix(c), n) }

// TrimPrefix is what the keys of a chain's trim records begin with.
func TrimPrefix(c Chain) string { return TrimsPrefix + c.String() + "/" }

// StreamKey is where a stream object stands that begins at a position.
func StreamKey(name string, e Epoch, first Seq, rev uint32) string {
	return fmt.Sprintf("%s%08x.%016x%s", StreamPrefix(name), uint32(e), uint64(first), revision(rev))
}

// StreamPrefix is the directory of a stream's objects; it ends in "/", and no
// other stream's keys begin with it.
func StreamPrefix(name string) string {
	return ObjPrefix + fanOf(name) + "/" + pathName(name) + "/"
}

// PackKey is where a pack of a chain stands that was first made of the slots
// from first to last.
func PackKey(c Chain, first, last ID, rev uint32) string {
	return fmt.Sprintf("%s%016x-%016x%s", PackChainPrefix(c), uint64(first), uint64(last), revision(rev))
}

// PackChainPrefix is what the keys of a chain's packs begin with.
func PackChainPrefix(c Chain) string { return PackPrefix + c.String() + "/" }

func revision(rev uint32) string {
	if rev == 0 {
		return ""
	}
	return fmt.Sprintf("~%08x", rev)
}

// fanOf spreads streams over 4,096 directories.
func fanOf(name string) string { return fmt.Sprintf("%03x", xxhash.Sum64String(name)>>52) }

func pathName(name string) string {
	if e := escape(name); len(e) <= maxEscapedName {
		return e
	}
	return "=h" + hashName(name)
}

func hashName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// unescape is escape's inverse; it takes only what escape writes.
func unescape(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case plain(c):
			b = append(b, c)
		case c == '=' && i+2 < len(s):
			v, err := hex.DecodeString(s[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b = append(b, v[0])
			i += 2
		default:
			return "", false
		}
	}
	name := string(b)
	return name, escape(name) == s
}

// String forms the key again.
func (k Key) String() string {
	switch k.Kind {
	case KeySlot:
		return SlotKey(k.Chain, k.ID)
	case KeyHead:
		return HeadKey(k.Chain)
	case KeyStamp:
		return StampKey()
	case KeyTopology:
		return TopologyKey(k.Chain.Epoch)
	case KeyTrim:
		return TrimKey(k.Chain, k.N)
	case KeyPack:
		return PackKey(k.Chain, k.ID, k.LastID, k.Revision)
	case KeyDoctor:
		return DoctorPrefix + k.Probe
	case KeyStream:
		if k.Stream != "" {
			return StreamKey(k.Stream, k.Chain.Epoch, k.First, k.Revision)
		}
		return fmt.Sprintf("%s%s/=h%s/%08x.%016x%s", ObjPrefix, k.Fan, k.StreamHash,
			uint32(k.Chain.Epoch), uint64(k.First), revision(k.Revision))
	}
	return ""
}

// IsOf says whether a stream key belongs to the stream of that name, also when
// the key only has its hash.
func (k Key) IsOf(stream string) bool {
	if k.Kind != KeyStream {
		return false
	}
	if k.Stream != "" {
		return k.Stream == stream
	}
	return k.StreamHash == hashName(stream) && k.Fan == fanOf(stream)
}
