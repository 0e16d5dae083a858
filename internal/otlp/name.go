package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/strandline/strandline/segment"
)

const (
	// mappedPrefix begins the names of streams whose attribute is no legal name.
	mappedPrefix = "otlp:"
	// mappedText is how much of such an attribute the name shows.
	mappedText = 150
)

// StreamName is the stream of an attribute's value. A legal name stays as it is. Any other
// becomes otlp:TEXT:HASH, so that different values have different streams; the value itself
// stands in each row, so nothing is lost by it. The empty value has none: "".
func StreamName(value string) string {
	if value == "" || segment.CheckStream(value) == nil {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	text := strings.ToValidUTF8(value, "\uFFFD")
	if len(text) > mappedText {
		text = text[:mappedText]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return mappedPrefix + text + ":" + hex.EncodeToString(sum[:8])
}
