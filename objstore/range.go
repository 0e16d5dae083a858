package objstore

// Resolve gives the bytes of an object of size bytes that r selects, as S3 does:
// a range that starts within the object is cut at its end; one that starts at or
// beyond the end is ErrRange, except the whole of an empty object and a suffix.
func (r Range) Resolve(size int64) (off, n int64, err error) {
	switch {
	case r == (Range{}) || r == Whole:
		return 0, size, nil
	case r.Offset < 0:
		n = min(-r.Offset, size)
		return size - n, n, nil
	case r.Length == 0 || r.Offset >= size:
		return 0, 0, ErrRange
	case r.Length < 0:
		return r.Offset, size - r.Offset, nil
	}
	return r.Offset, min(r.Length, size-r.Offset), nil
}
