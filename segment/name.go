package segment

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// auditPrefix begins the one family of reserved streams: system records that
// outlive the slot they were written in.
const auditPrefix = "~audit/"

// AuditStream is the reserved stream of a shard's system records.
func AuditStream(shard Shard) string {
	return auditPrefix + strconv.FormatUint(uint64(shard), 10)
}

// CheckStream accepts the names a client may append to: 1 to 200 bytes of valid
// UTF-8 that do not begin with "~".
func CheckStream(name string) error {
	if strings.HasPrefix(name, "~") {
		return &NameError{name, "names beginning with ~ are reserved"}
	}
	return checkText(name, MaxStreamName)
}

// CheckReserved accepts the reserved streams that exist.
func CheckReserved(name string) error {
	if _, ok := auditShard(name); !ok {
		return &NameError{name, "not a reserved stream: the only form is ~audit/<shard>"}
	}
	return nil
}

// checkAnyStream accepts what may stand in a batch: a client's stream or a
// reserved one.
func checkAnyStream(name string) error {
	if strings.HasPrefix(name, "~") {
		return CheckReserved(name)
	}
	return checkText(name, MaxStreamName)
}

// CheckConsumer accepts 1 to 200 bytes of valid UTF-8.
func CheckConsumer(name string) error { return checkText(name, MaxConsumerName) }

// CheckProducer accepts 1 to 200 bytes of valid UTF-8.
func CheckProducer(id string) error { return checkText(id, MaxProducerName) }

func checkText(name string, limit int) error {
	switch {
	case name == "":
		return &NameError{name, "empty"}
	case len(name) > limit:
		return &NameError{name, fmt.Sprintf("%d bytes, at most %d", len(name), limit)}
	case !utf8.ValidString(name):
		return &NameError{name, "not valid UTF-8"}
	}
	return nil
}

// auditShard reads the shard out of a reserved name in its one form.
func auditShard(name string) (Shard, bool) {
	s, ok := strings.CutPrefix(name, auditPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, false
	}
	return Shard(n), true
}
