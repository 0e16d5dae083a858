package sqlite

// migrations only go forward; the index of one, plus one, is the user_version that
// it leads to. Standing ones are never edited.
var migrations = [...]string{schema1, schema2, schema3, schema4}

const schemaVersion = len(migrations)

// Times are Unix nanoseconds, 0 for none; UUIDs are 16 bytes; digests and sums are
// the 64 bits as a signed integer.
const schema1 = `
CREATE TABLE settings (
	name TEXT PRIMARY KEY, value NOT NULL, old INTEGER NOT NULL, effective INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE topology (
	epoch INTEGER PRIMARY KEY, shards INTEGER NOT NULL, class TEXT NOT NULL,
	buckets TEXT NOT NULL, settle INTEGER NOT NULL, state TEXT NOT NULL
);
CREATE TABLE chain (
	epoch INTEGER NOT NULL, shard INTEGER NOT NULL,
	owner BLOB NOT NULL, address TEXT NOT NULL, term INTEGER NOT NULL, lease_end INTEGER NOT NULL,
	closed INTEGER NOT NULL,
	absorbed_end INTEGER NOT NULL, last_uuid BLOB NOT NULL, last_term INTEGER NOT NULL, next_seq INTEGER NOT NULL,
	rewritten INTEGER NOT NULL, condemned INTEGER NOT NULL, condemned_at INTEGER NOT NULL, trimmed INTEGER NOT NULL,
	watermark_seq INTEGER NOT NULL, watermark_segment INTEGER NOT NULL,
	consumers TEXT NOT NULL, transit_bytes INTEGER NOT NULL, transit_since INTEGER NOT NULL,
	trim_journal INTEGER NOT NULL,
	PRIMARY KEY (epoch, shard)
) WITHOUT ROWID;
CREATE TABLE term (
	epoch INTEGER NOT NULL, shard INTEGER NOT NULL, term INTEGER NOT NULL,
	owner BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, last_seq INTEGER NOT NULL,
	PRIMARY KEY (epoch, shard, term)
) WITHOUT ROWID;
-- owed: its settle marker stands and it counts in the chain's transit bytes.
CREATE TABLE slot (
	epoch INTEGER NOT NULL, shard INTEGER NOT NULL, id INTEGER NOT NULL,
	first INTEGER NOT NULL, next INTEGER NOT NULL, bytes INTEGER NOT NULL,
	uuid BLOB NOT NULL, prev BLOB NOT NULL, digest INTEGER NOT NULL, term INTEGER NOT NULL,
	sealed INTEGER NOT NULL, closed INTEGER NOT NULL, void INTEGER NOT NULL,
	key TEXT NOT NULL, owed INTEGER NOT NULL,
	PRIMARY KEY (epoch, shard, id)
) WITHOUT ROWID;
CREATE INDEX slot_owed ON slot (epoch, shard, id) WHERE owed = 1;
-- last_shard: the chain of last. hash: of names too long to stand in a key.
CREATE TABLE stream (
	id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
	live_epoch INTEGER NOT NULL, live_seq INTEGER NOT NULL,
	last_epoch INTEGER NOT NULL, last_seq INTEGER NOT NULL, last_shard INTEGER NOT NULL,
	deleted INTEGER NOT NULL, created INTEGER NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX stream_hash ON stream (hash) WHERE hash <> '';
CREATE TABLE object (
	id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
	kind TEXT NOT NULL, class TEXT NOT NULL, revision INTEGER NOT NULL, generation INTEGER NOT NULL
);
-- Finds at once a kind that this build does not know: it stops every delete (K16).
CREATE INDEX object_odd ON object (kind) WHERE kind <> 'slot' AND kind <> 'stream' AND kind <> 'pack' AND kind <> 'lost';
CREATE TABLE ref (
	stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
	shard INTEGER NOT NULL, prev_epoch INTEGER NOT NULL, prev_seq INTEGER NOT NULL, object INTEGER NOT NULL,
	chunks INTEGER NOT NULL, offset INTEGER NOT NULL, stored INTEGER NOT NULL, raw INTEGER NOT NULL,
	codec INTEGER NOT NULL, crc INTEGER NOT NULL, sum INTEGER NOT NULL,
	rows INTEGER NOT NULL, row_sum INTEGER NOT NULL, bytes INTEGER NOT NULL,
	min_time INTEGER NOT NULL, max_time INTEGER NOT NULL,
	PRIMARY KEY (stream, epoch, first)
) WITHOUT ROWID;
CREATE INDEX ref_object ON ref (object);
CREATE INDEX ref_chain ON ref (epoch, shard, last);
-- version: from counter, never used twice, so that a holder of a marker that was
-- resolved and armed again does not resolve the new one. confirmed_at: 0 is
-- unconfirmed. lease_version: the version that the lease's holder took.
CREATE TABLE marker (
	duty TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, due INTEGER NOT NULL,
	class TEXT NOT NULL, confirmed_at INTEGER NOT NULL,
	lease_owner TEXT NOT NULL, lease_end INTEGER NOT NULL, lease_version INTEGER NOT NULL,
	attempts INTEGER NOT NULL, last_error TEXT NOT NULL,
	PRIMARY KEY (duty, id)
) WITHOUT ROWID;
CREATE INDEX marker_due ON marker (duty, due);
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('marker', 0);
CREATE TABLE lease (
	duty TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, lease_end INTEGER NOT NULL,
	PRIMARY KEY (duty, id)
) WITHOUT ROWID;
CREATE TABLE intent (
	key TEXT PRIMARY KEY, class TEXT NOT NULL, serves TEXT NOT NULL, nonce TEXT NOT NULL,
	uploads TEXT NOT NULL, announced INTEGER NOT NULL, deadline INTEGER NOT NULL,
	state TEXT NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE auditor (id TEXT PRIMARY KEY, lease_end INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE audit (
	seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL,
	kind TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL
);
`

// What an epoch's chains give up; an epoch that says nothing keeps everything.
const schema2 = `
ALTER TABLE topology ADD COLUMN retention TEXT NOT NULL DEFAULT '{}';
`

// A generation's packs of one chain, in the order of their keys: what a pack-merge
// counts and takes, however many packs of other generations stand.
const schema3 = `
CREATE INDEX object_pack ON object (generation, key) WHERE kind = 'pack';
`

// Long refs by the number of hex digits of their length: those across a seq are found
// digit by digit (across.go), however many refs lie behind it. Most refs are short, and
// not in it.
const schema4 = `
CREATE INDEX ref_long ON ref (epoch, shard, length(printf('%x', last - first)), last) WHERE last - first >= 4096;
`
