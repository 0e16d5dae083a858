package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/segment"
)

var strandlineShard = Peer{
	Name: "strandline shard", Role: Ours, Module: strandlineModule,
	Note: "localtier.Writer on one shard: admission, seqs, read index, lease; AckLocal, 16 streams. It is measured in steady state, with spare files to write over; the bucket is far away, and sealed segments wait. Its open is catalog, bucket and writer; its replay is a read-only open and a scan of the shard through its index",
	Open: openShard, Replay: replayShard, SpareDir: chainDir,
}

// shardStreams is how many streams the producers share.
const shardStreams = 16

func streamOf(n int) string { return fmt.Sprintf("stream-%02d", n%shardStreams) }

// farCatalog does not answer the publisher once the writer serves: nothing is
// published, at no cost.
type farCatalog struct {
	*sqlite.DB
	far atomic.Bool
}

func (c *farCatalog) Chain(ctx context.Context, chain segment.Chain) (catalog.ChainRow, error) {
	if c.far.Load() {
		<-ctx.Done()
		return catalog.ChainRow{}, context.Cause(ctx)
	}
	return c.DB.Chain(ctx, chain)
}

type shardLog struct {
	writer  *localtier.Writer
	catalog *farCatalog
}

func openShard(dir string, o Options) (Log, error) {
	ctx := context.Background()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "catalog.db"), Create: true})
	if err != nil {
		return nil, err
	}
	l := &shardLog{catalog: &farCatalog{DB: db}}
	options, err := shardOptions(ctx, dir, o, l.catalog)
	if err == nil {
		l.writer, err = localtier.Open(ctx, options)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	l.catalog.far.Store(true)
	return l, nil
}

func shardOptions(ctx context.Context, dir string, o Options, cat *farCatalog) (localtier.Options, error) {
	out := localtier.Options{Dir: filepath.Join(dir, "writer"), Catalog: cat, Config: localtier.Config{
		WAL:            wal.Config{SegmentBytes: int64(o.SegmentBytes), SegmentAge: 24 * time.Hour, SpareFiles: spareFiles(o)},
		MaxUnpublished: math.MaxInt64, Housekeeping: time.Hour,
	}}
	if _, err := cat.Init(ctx, uuid.New()); err != nil {
		return out, err
	}
	bucket, err := fsstore.Open(filepath.Join(dir, "bucket"), fsstore.Options{Create: true})
	if err != nil {
		return out, err
	}
	store, err := objstore.New(bucket, objstore.Config{})
	if err != nil {
		return out, err
	}
	out.Classes = objstore.Classes{string(segment.ClassStandard): {store}}
	out.Topology, err = cat.EnsureTopology(ctx, catalog.Topology{
		Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"local"}, Settle: true, State: catalog.TopologyOpen,
	})
	return out, err
}

func (l *shardLog) Producer(n int) func(rec []byte) error {
	ctx := context.Background()
	stream, rows := streamOf(n), make([]segment.Row, 1)
	return func(rec []byte) error {
		rows[0] = segment.Row{Payload: rec}
		_, err := l.writer.Append(ctx, stream, rows, localtier.AckLocal)
		return err
	}
}

// Close does not wait for the bucket: that rows are left here is what was meant.
func (l *shardLog) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := l.writer.Close(ctx)
	if errors.Is(err, localtier.ErrUnpublished) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, l.catalog.Close())
}

func chainDir(dir string) string {
	return filepath.Join(dir, "writer", segment.Chain{Epoch: 1}.String())
}

func replayShard(dir string, _ Options, sink Sink) error {
	ctx := context.Background()
	ro, err := localtier.OpenReadOnly(ctx, chainDir(dir))
	if err != nil {
		return err
	}
	first, _ := ro.Local() // what was before was given up
	for row, err := range ro.ReadShard(ctx, first, 0) {
		if err == nil {
			err = sink(row.Payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
