// Package column is how the rows of package catalog stand in the columns of a database:
// what catalog/sqlite and catalog/postgres store alike, so that a column that is added or
// read differently is one edit.
//
//	names      the columns of a table, in the order in which they are read
//	values     a row of those columns to a value of package catalog
//	Nanos, At  a time as nanoseconds, and back; 0 is no time
//	JSON       a list in one column, and back
//	Reach      the classes of lengths of refs, which an index of both is made of
//
// A row that does not decode is catalog.ErrCorrupt.
//
// What this package does not do: statements, connections, decisions. Writing is each
// database's own: one takes sets as JSON, the other as arrays. Names of streams are text
// in the one and bytes in the other, so who reads a stream or a ref says where to.
//
//	rows.go    chains, terms, slots, streams, epochs
//	refs.go    refs
//	duties.go  markers, intents
//	encode.go  times, JSON
//	across.go  lengths of refs
package column
