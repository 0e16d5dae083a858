package segment

import "encoding/binary"

// AppendConsumer appends the payload of a ConsumerCreate, Ack or ConsumerRemove
// frame: they share one form, and the kind says what it means.
func AppendConsumer(dst []byte, c Consumer) ([]byte, error) {
	if err := CheckConsumer(c.Name); err != nil {
		return dst, err
	}
	dst = appendText(dst, c.Name)
	return binary.AppendUvarint(dst, uint64(c.Cursor)), nil
}

// DecodeConsumer reads the payload of a ConsumerCreate, Ack or ConsumerRemove
// frame.
func DecodeConsumer(p []byte) (Consumer, error) {
	r := newReader(p, "consumer")
	c := Consumer{Name: string(r.text(MaxConsumerName, "consumer name")), Cursor: Seq(r.uvarint())}
	if r.err == nil {
		if err := CheckConsumer(c.Name); err != nil {
			r.fail("%v", err)
		}
	}
	return c, r.done()
}
