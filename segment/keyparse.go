package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseKey reads any key that this build writes; for every other string it
// gives ErrUnknownKey.
func ParseKey(s string) (Key, error) {
	p := keyParser{rest: s, ok: true}
	var k Key
	switch {
	case s == stampKey:
		return Key{Kind: KeyStamp}, nil
	case p.lit(DoctorPrefix):
		k = Key{Kind: KeyDoctor, Probe: p.probe()}
	case p.lit(SegPrefix):
		k = Key{Kind: KeySlot, Chain: p.chain()}
		p.must(".")
		k.ID = ID(p.hex(16))
	case p.lit(RWPrefix):
		k = Key{Kind: KeyHead, Chain: p.chain()}
	case p.lit(TopologyPrefix):
		k = Key{Kind: KeyTopology, Chain: Chain{Epoch: Epoch(p.hex(8))}}
	case p.lit(TrimsPrefix):
		k = Key{Kind: KeyTrim, Chain: p.chain()}
		p.must("/")
		k.N = p.hex(16)
	case p.lit(PackPrefix):
		k = p.pack()
	case p.lit(ObjPrefix):
		k = p.stream()
	default:
		p.ok = false
	}
	if !p.ok || p.rest != "" {
		return Key{}, fmt.Errorf("%w: %q", ErrUnknownKey, s)
	}
	return k, nil
}

// keyParser takes fields off the front of a key; ok falls at the first that
// does not fit and stays down.
type keyParser struct {
	rest string
	ok   bool
}

func (p *keyParser) lit(s string) bool {
	rest, found := strings.CutPrefix(p.rest, s)
	if found {
		p.rest = rest
	}
	return found
}

func (p *keyParser) must(s string) { p.ok = p.lit(s) && p.ok }

// hex reads exactly n lower-case hex digits.
func (p *keyParser) hex(n int) uint64 {
	s := p.digits(n)
	if !p.ok {
		return 0
	}
	v, err := strconv.ParseUint(s, 16, 64)
	p.ok = err == nil
	return v
}

func (p *keyParser) digits(n int) string {
	if !p.ok || len(p.rest) < n {
		p.ok = false
		return ""
	}
	s := p.rest[:n]
	for i := range n {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			p.ok = false
			return ""
		}
	}
	p.rest = p.rest[n:]
	return s
}

func (p *keyParser) chain() (c Chain) {
	c.Epoch = Epoch(p.hex(8))
	p.must(".")
	c.Shard = Shard(p.hex(8))
	return c
}

// revision reads "~" and eight digits, or nothing. Revision 0 has the bare key.
func (p *keyParser) revision() uint32 {
	if !p.lit("~") {
		return 0
	}
	v := uint32(p.hex(8))
	p.ok = p.ok && v != 0
	return v
}

func (p *keyParser) pack() Key {
	k := Key{Kind: KeyPack, Chain: p.chain()}
	p.must("/")
	k.ID = ID(p.hex(16))
	p.must("-")
	k.LastID = ID(p.hex(16))
	k.Revision = p.revision()
	p.ok = p.ok && k.ID <= k.LastID
	return k
}

// probe reads a run of the doctor and what it named, at least one segment each. The rest
// is the doctor's own: nothing else reads it.
func (p *keyParser) probe() string {
	s := p.rest
	p.rest = ""
	segments := strings.Split(s, "/")
	p.ok = p.ok && len(segments) > 1
	for _, seg := range segments {
		p.ok = p.ok && probeSegment(seg)
	}
	return s
}

func probeSegment(seg string) bool {
	if seg == "" || seg == "." || seg == ".." || len(seg) > 255 {
		return false
	}
	for i := range len(seg) {
		if c := seg[i]; !plain(c) && c != '.' && c != '~' && c != '=' {
			return false
		}
	}
	return true
}

func (p *keyParser) stream() Key {
	k := Key{Kind: KeyStream, Fan: p.digits(3)}
	p.must("/")
	name, rest, found := strings.Cut(p.rest, "/")
	if !p.ok || !found {
		p.ok = false
		return k
	}
	p.rest = rest
	p.streamName(&k, name)
	k.Chain.Epoch = Epoch(p.hex(8))
	p.must(".")
	k.First = Seq(p.hex(16))
	k.Revision = p.revision()
	return k
}

// streamName reads the path segment of a stream: its escaped name, or "=h" and
// a hash. No escape begins with "=h", for h is no hex digit.
func (p *keyParser) streamName(k *Key, s string) {
	if h, hashed := strings.CutPrefix(s, "=h"); hashed {
		q := keyParser{rest: h, ok: true}
		k.StreamHash = q.digits(32)
		p.ok = q.ok && q.rest == ""
		return
	}
	name, ok := unescape(s)
	k.Stream = name
	p.ok = ok && len(s) <= maxEscapedName && fanOf(name) == k.Fan && checkAnyStream(name) == nil
}
