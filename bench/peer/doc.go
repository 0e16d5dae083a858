// Package peer opens our log and nine others behind one small interface, so that
// one loop can append to all of them.
//
// Every adapter is a file named after its peer and keeps to three rules. An append
// returns once the record is durable by the means that the peer itself offers for
// that. The peer is set as its own users run it for durability, segments of one size
// where it has segments; what the adapter does for it, or what the peer leaves
// undone, stands in its Note and is printed with the figures. And what was
// acknowledged can be read back: the tests append, look at the files without closing,
// close, open again, append more, and count.
//
// A peer without group commit stands behind one committer goroutine (committer.go):
// producers queue, one batch call, one sync, all are woken. So the comparison is of
// logs, not of who brought a queue along.
//
// The two bare rows (bare.go) are no logs: a write and an fdatasync, in a file that
// grows and in a file whose blocks were written before. They say what the disk gives
// to anybody.
package peer
