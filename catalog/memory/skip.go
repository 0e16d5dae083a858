package memory

// Guard names a guard of a verb that Options.Skip switches off. Each is a bug class
// of a catalog, planted so that a simulator can show that it notices. None is for
// anything else.
type Guard string

// The guards, with what goes wrong without them.
const (
	// ReadGrace: whoever deletes waits no read grace, so that a plan handed out a moment
	// ago finds its objects gone (I4, I7).
	ReadGrace Guard = "read grace"
	// CondemnedAt: condemned slots are due at once, whenever they were condemned (I4).
	CondemnedAt Guard = "condemned_at"
	// OrphanGrace: an intent is judged as soon as somebody looks, its job still at work.
	OrphanGrace Guard = "orphan grace"
	// Condemned: a key is burned without having been condemned, so a commit may name
	// what is being deleted (I2).
	Condemned Guard = "condemned"
	// CommitIntent: a rewrite commits without its own standing intent: its object may be
	// condemned, or deleted already (I2).
	CommitIntent Guard = "intent"
	// CommitRefs: a rewrite replaces whatever refs stand where the expected ones stood (I1).
	CommitRefs Guard = "ref unchanged"
	// BurnedKey: a key that was condemned or burned is announced again: a late delete of
	// the old object takes the new one (I2).
	BurnedKey Guard = "burned key"
	// Confirmed: a reap-check condemns at its first look, without the second (I4).
	Confirmed Guard = "confirmed"
	// Named: a key is condemned, and a slot trimmed, though refs name it (I2).
	Named Guard = "refs"
	// Version: markers are resolved, postponed and confirmed whatever their version, so
	// what was armed during a run is lost (I3, I5).
	Version Guard = "marker version"
	// Watch: a rewrite arms no reap-check for the objects whose refs it takes (I3, I5).
	Watch Guard = "watchers"
	// Retire: a ref is retired as long as one begins where the seen one did, though it
	// changed since or is alive (I1).
	Retire Guard = "ref seen"
	// FirstSeq: a ref counts as dead if its first row is, so that one across live_from
	// goes with its live rows (I1).
	FirstSeq Guard = "dead by last"
	// DeadRefs: an absorb that comes again inserts its refs that are wholly below live_from
	// by now, though their slot may be gone (I2, I5).
	DeadRefs Guard = "dead refs"
	// Position: a slot above absorbed_end is absorbed, and what lies between never (I1, I8).
	Position Guard = "absorbed_end"
	// Continues: a slot is absorbed whatever its term, its first seq and the segment
	// before it (I8).
	Continues Guard = "continues"
	// Stood: a slot below absorbed_end counts as absorbed before, whoever's stood there: a
	// stalled owner acknowledges rows that never entered the history (I8, K1).
	Stood Guard = "slot at position"
	// Consumer: a watermark rises past the slowest consumer (03 §9).
	Consumer Guard = "consumer"
	// LiveFrom: a trim sets live_from even where that lowers it (I6).
	LiveFrom Guard = "live_from"
)
