// Package localtier is the writer's side: rows become durable here, are published
// slot by slot, and are absorbed into the catalog.
//
//	Writer            the shards of a process: routing, flush, close, status
//	  shard log       one chain (epoch, shard), owned by one directory
//	    wal           its segment files: group commit, rotation, recovery
//	    publisher     sealed segment -> slot -> refs, strictly in order
//	    lease         liveness of the ownership; safety is in the bucket and the guards
//
//	<Dir>/<epoch 8 hex>.<shard 8 hex>/
//	    <segment id, 16 hex>.seg …   and the sidecars of localtier/wal
//	    IDENTITY                     the writer UUID, made with the directory
//	    uploads/                     ids of multipart uploads that have not ended
//
//	<Dir>/quarantine/<chain>.<writer uuid>.<n>/
//	    a shard directory that did not continue its chain, with quarantine.json, the verdict
//	    on it, and salvage.json, how far its rows were appended again
//
// The steps, in their order, and the file of each:
//
//	open       open.go recovers the directory; take.go looks at the chain and decides:
//	           resume.go (it goes on, or takes the chain back from a taker that never
//	           began), acquire.go and fence.go (an empty one), carriedslot.go (what a lost
//	           directory carried), reconcile.go (set aside), judge.go (what of it the
//	           chain has)
//	append     writer.go routes, admit.go refuses, append.go numbers and queues (pending.go),
//	           partly.go says what of a refused append is durable,
//	           producers.go answers retries, ack.go answers; seal.go seals early for those
//	           who wait
//	publish    publisher.go is the loop; parcel.go the bundle and its create-once PUT
//	           (uploads.go remembers those that have not ended), verdict.go what a 412
//	           means, and the absorb; copies.go the copies that a bucket missed;
//	           finish.go the CHECKPOINT
//	keep       lease.go; hydrate.go brings slots back (slotchunks.go); housekeep.go unlinks
//	           what is published, and not held (holds.go); retention.go gives up
//	read       index.go and frames.go: where rows lie; scan.go and pass.go read a segment
//	           through for it; read.go and framesource.go a stream, shardscan.go a shard;
//	           tail.go waits for the next; readonly.go without owning it
//	consumers  consumers.go makes, acknowledges and removes, consumerspull.go pulls;
//	           carried.go is what every SegmentStart repeats of them and of producers
//	aside      quarantine.go lists, quarantineremove.go gives up, quarantineroom.go weighs,
//	           salvage.go appends again
//	end        close.go: seal, publish, absorb, release; topology.go: the same for an epoch,
//	           and the closing of a chain
//
// Who waits for whom: an append for the log's committer, and for `shared` for the
// publisher; the publisher for bucket and catalog. state.go holds what they share, api.go,
// config.go, errors.go and status.go what callers see of it; disk.go is how full the disk is,
// trace.go who watches.
//
// What an acknowledgement means. AckLocal: the row's frame was fsynced on this
// disk while the lease was good. AckShared: its slot stands in the bucket and was
// absorbed under the catalog's guards; it survives this process and this disk.
// Never from memory. An append that ends in an error may still have become
// durable; one that ends in a refusal (NotOwnerError, BackpressureError, NameError,
// ErrTooLarge) has not.
//
// What the index costs. It has places, no rows: 16 bytes a frame, so at most that a
// row (16.1 measured over a million one-row frames, in 1 stream and in 10,000 alike),
// and some 115 bytes a stream and segment for the stream's name and chain. A shard holds
// at most 8 Mi frames of it (128 MiB); what is not used goes first and is made again from
// the file. A seq is found in O(log n), of the shard as of one stream.
//
// What else a shard holds in memory: at most two segments of bytes that wait for the disk
// (localtier/wal), 10,000 consumers and 10,000 producers, one slot while it is published
// (Config.Publishing at a time in a writer) or brought back (Config.Hydrating), and one pull
// of 16 MiB for each that is under way. On disk: Config.MaxUnpublished of what the bucket
// does not have, Config.ConsumerHoldMax of what it has, and the spare files of the log.
//
// What it does not do. It deletes nothing in the bucket; it does not delete what is in
// quarantine and not proven absorbed; it does not give up rows by itself, but by the
// epoch's policy. It has no second copy of a row that only one disk has: that is what
// AckShared is for.
package localtier
