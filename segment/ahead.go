package segment

// aheadRoom is what is free before a read-ahead's bytes for the frame that the window
// before it cut: a longer one is read anew.
const aheadRoom = 64 << 10

// ahead reads a Scanner's next window, and digests the last one, on a goroutine of its
// own while the frames of the present window are checked. At most one job runs at a time;
// what it touches belongs to it until done is closed.
type ahead struct {
	buf  []byte // aheadRoom, then the bytes at `from`
	from int64
	n    int64 // how many
	err  error
	done chan struct{} // nil: no job was begun
}

// ReadAhead makes the Scanner use a second core, for whoever reads whole files. It holds
// a second window. Call stop once, before the file is closed.
func (s *Scanner) ReadAhead() (stop func()) {
	s.ahead = &ahead{}
	return s.wait
}

// wait ends the job that is under way, if one is.
func (s *Scanner) wait() {
	if a := s.ahead; a != nil && a.done != nil {
		<-a.done
	}
}

// advance moves the window to off by way of what was read ahead, and begins the next
// job. It says false if that does not hold n bytes at off: then they are read here.
func (s *Scanner) advance(off, n int64) bool {
	a, w := s.ahead, &s.src
	if a == nil {
		return false
	}
	s.wait()
	end := w.start + int64(len(w.buf))
	cut := end - off // bytes of a frame that begins in the present window
	if a.done == nil || a.err != nil || a.from != end || cut < 0 || cut > min(aheadRoom, int64(len(w.buf))) || n > cut+a.n {
		return false
	}
	old, oldStart := w.buf, w.start
	next := a.buf[aheadRoom-cut : aheadRoom+a.n]
	copy(next, old[off-oldStart:])
	undigested := old[s.hashed-oldStart : off-oldStart]
	s.hashed = off
	free := w.room
	w.buf, w.start, w.room = next, off, a.buf
	s.begin(free, undigested)
	return true
}

// begin starts the job: digest what the last window held, then read what follows the
// present one into buf, which may be the last one's.
func (s *Scanner) begin(buf, undigested []byte) {
	a, w := s.ahead, &s.src
	a.from = w.start + int64(len(w.buf))
	a.n = min(scanWindow, w.size-a.from)
	a.done = make(chan struct{})
	if cap(buf) < aheadRoom+scanWindow {
		buf = make([]byte, aheadRoom+scanWindow)
	}
	a.buf, a.err = buf[:aheadRoom+scanWindow], nil
	go func() {
		defer close(a.done)
		mustWrite(&s.hash, undigested)
		if a.n > 0 {
			a.err = readFull(w.r, a.buf[aheadRoom:aheadRoom+a.n], a.from)
		}
	}()
}
