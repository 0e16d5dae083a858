package otlp

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// census is what a request holds, counted before anything of it is decoded: two bytes on
// the wire may become some hundred in memory.
type census struct {
	records  int
	elements int // messages of any kind, records among them
}

// maxDepth is where the decoder gives up, too.
const maxDepth = 100

var errWire = errors.New("not a protobuf message of OTLP logs")

// message is a type of the OTLP schema that can hold any number of others.
type message int

const (
	leaf message = iota
	request
	resourceLogs
	resource
	scopeLogs
	scope
	record
	keyValue
	anyValue
	array
	list
)

// schema says which fields of a message are messages again.
var schema = [...]map[protowire.Number]message{
	leaf:         nil,
	request:      {1: resourceLogs},
	resourceLogs: {1: resource, 2: scopeLogs},
	resource:     {1: keyValue, 3: leaf},
	scopeLogs:    {1: scope, 2: record},
	scope:        {3: keyValue},
	record:       {5: anyValue, 6: keyValue},
	keyValue:     {2: anyValue},
	anyValue:     {5: array, 6: list},
	array:        {1: anyValue},
	list:         {1: keyValue},
}

// survey counts a request.
func survey(body []byte) (c census, err error) { return c, c.count(body, request, 0) }

func (c *census) count(b []byte, m message, depth int) error {
	if depth > maxDepth {
		return errors.New("values are nested too deep: 100 levels at most")
	}
	inner := schema[m]
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		kind, counted := inner[num]
		if typ != protowire.BytesType || !counted {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return errWire
			}
			b = b[n:]
			continue
		}
		text, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		c.elements++
		if kind == record {
			c.records++
		}
		if kind == leaf {
			continue
		}
		if err := c.count(text, kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// surveyJSON bounds what a JSON text becomes: its objects, and how deep they are nested. It
// need not know the schema, and what is no JSON is the decoder's to refuse.
func surveyJSON(text []byte) (objects int, err error) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > 3*maxDepth { // a value in a value is three brackets
				return 0, errors.New("values are nested too deep: 100 levels at most")
			}
			objects++
		case c == '}', c == ']':
			depth--
		}
	}
	return objects, nil
}
