// Package bare does to a catalog's ref table what a program without verbs would do: it
// inserts rows, and nothing else. `strandline bench catalog` holds AbsorbSlot against it,
// in the same run and the same table.
//
// The rows are those of a slot that was just absorbed. They are read and deleted, and put
// back in one durable transaction, which is what is timed: by COPY on PostgreSQL, by one
// prepared statement run for each row on SQLite. So they are of the very same shape, go to
// the very same places of the very same indexes, and the catalog is afterwards as it was.
// They go in sorted by key, as an expert would do it.
//
// It also tells what the table takes on disk. It stands under catalog/ because it is SQL.
//
//	sqlite.go    the prepared batch
//	postgres.go  the COPY
package bare
