package peer

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

var etcdWAL = Peer{
	Name: "etcd wal", Role: Rival, Module: "go.etcd.io/etcd/server/v3",
	Note: "behind the committer; Save syncs; segments fallocated ahead by its pipeline; open is Open and ReadAll, which brings the whole log into memory",
	Open: openEtcd, Replay: replayEtcd,
}

type etcdLog struct {
	wal     *wal.WAL
	index   uint64
	entries []raftpb.Entry
}

// etcdDir is below dir, since Create makes its directory itself.
func etcdDir(dir string) string { return filepath.Join(dir, "wal") }

func openEtcd(dir string, o Options) (Log, error) {
	wal.SegmentSizeBytes = int64(o.SegmentBytes) // its only setting is a package variable; one log a process here
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l := &etcdLog{}
	var err error
	if wal.Exist(etcdDir(dir)) {
		if l.wal, err = wal.Open(zap.NewNop(), etcdDir(dir), walpb.Snapshot{}); err != nil {
			return nil, err
		}
		var ents []raftpb.Entry
		if _, _, ents, err = l.wal.ReadAll(); err != nil { // it must be read before it takes entries
			return nil, errors.Join(err, l.wal.Close())
		}
		l.index = uint64(len(ents))
	} else if l.wal, err = wal.Create(zap.NewNop(), etcdDir(dir), nil); err != nil {
		return nil, err
	}
	return commitFor(l), nil
}

func (l *etcdLog) appendBatch(recs [][]byte) error {
	l.entries = l.entries[:0]
	for _, rec := range recs {
		l.index++
		l.entries = append(l.entries, raftpb.Entry{Term: 1, Index: l.index, Data: rec})
	}
	return l.wal.Save(raftpb.HardState{}, l.entries)
}

func (l *etcdLog) Close() error { return l.wal.Close() }

func replayEtcd(dir string, _ Options, sink Sink) error {
	w, err := wal.OpenForRead(zap.NewNop(), etcdDir(dir), walpb.Snapshot{})
	if err != nil {
		return err
	}
	_, _, ents, err := w.ReadAll()
	if errors.Is(err, io.ErrUnexpectedEOF) { // the fallocated end of the last segment
		err = nil
	}
	for i := range ents {
		if err == nil {
			err = sink(ents[i].Data)
		}
	}
	if cerr := w.Close(); !errors.Is(cerr, os.ErrInvalid) { // opened for reading, it has no directory to close, and says so
		err = errors.Join(err, cerr)
	}
	return err
}
