package coldload

// leastShare is what a read may hold ahead however many others there are.
const leastShare = 1 << 20

// begin counts a read in; what it returns counts it out.
func (r *Reader) begin() func() {
	r.reads.Add(1)
	return func() { r.reads.Add(-1) }
}

// share is what one read may hold ahead now. It is asked for anew with each plan, so
// reads that began alone give room to those that came after them.
func (r *Reader) share() int64 {
	return max(min(r.cfg.MemoryBytes, r.cfg.TotalBytes/max(r.reads.Load(), 1)), leastShare)
}
