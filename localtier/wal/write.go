package wal

import "github.com/strandline/strandline/segment"

// writePiece is how much of a run is written at a time. It bounds the blocks of memory
// that a growing file asks the page cache for: in a virtual machine those of 256 KiB and
// more are often ones that the host has taken back, and then the write takes several
// times as long.
const writePiece = 128 << 10

// startPieces is behind how many of them the disk is asked to begin: it is at work on
// them while the next are copied. Behind each one costs more calls than it gains.
const startPieces = 2

// placeFrames makes the headers final: what is synced now is what damage in a
// later crash is judged by.
func (l *Log) placeFrames(r *run) {
	synced := uint32(l.durable.end)
	for i, mark := range r.marks {
		end := len(r.buf)
		if i+1 < len(r.marks) {
			end = r.marks[i+1]
		}
		segment.SealFrameHeader(r.buf[mark:end], r.uuid, r.off+int64(mark), synced)
	}
}

// writeRun writes the frames and, if the segment ends here, its Seal, and
// returns where the file ends then. On an error the file is as it was before.
func (l *Log) writeRun(r *run) (end int64, seal sealFrame, err error) {
	end = r.off + int64(len(r.buf))
	if err := l.writeFrames(r); err != nil {
		return 0, seal, l.rollback("write", err)
	}
	if !r.seal {
		if err := l.fillAhead(end, end-r.off); err != nil {
			return 0, seal, l.rollback("write ahead", err)
		}
		return end, seal, nil
	}
	if seal, err = l.encodeSeal(r, l.next.Sum64()); err != nil {
		return 0, seal, l.rollback("encode Seal", err)
	}
	if err := l.writeSeal(seal, end); err != nil {
		return 0, seal, l.rollback("write Seal", err)
	}
	end += int64(len(seal.frame))
	if err := l.truncateAtSeal(end); err != nil {
		return 0, seal, l.rollback("truncate at Seal", err)
	}
	return end, seal, nil
}

// writeFrames writes the run's frames, and has the disk begin with all of them but the
// last pieces, which are syncRun's. A crash in between leaves any part of them: a torn
// tail, which nobody was told of.
func (l *Log) writeFrames(r *run) error {
	n := l.cfg.tune.writePiece
	begin := startPieces * n
	for at := 0; at < len(r.buf); at += n {
		if at > 0 && at%begin == 0 {
			l.file.Start(r.off+int64(at-begin), int64(begin))
		}
		if _, err := l.file.WriteAt(r.buf[at:min(at+n, len(r.buf))], r.off+int64(at)); err != nil {
			return err
		}
	}
	return nil
}
