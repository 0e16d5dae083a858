// Package catalogbench measures a catalog's verbs at several numbers of refs, beside a bare
// insert into the same table: `strandline bench catalog`.
//
//	        10^4 refs        10^6 refs        10^7 refs (PostgreSQL)
//	      +-----------+    +-----------+    +-----------+
//	fill  | AbsorbSlot, slots of 10,000 refs, one row each into 10,000 streams;
//	      | and one stream with 1,000 refs in a row, and a marker for every 50 refs
//	      +-----------+    +-----------+    +-----------+
//	then  | samples: AbsorbSlot of 1,000 and of 10,000 refs, each beside the bare insert of
//	      | the same rows; CommitRewrite of a slot's 10,000 refs into one pack; Plan and
//	      | Liveness of 1,000 refs; TakeDue of 1,000 markers; 16 clients that renew leases
//	      +-----------+    +-----------+    +-----------+
//	out   medians, ratios to the smallest size, bytes a ref, what was expected
//
// Scattered is the point: a slot holds a few rows of each of many streams, so its refs go
// to as many places of the table's key, a page each where the table is large. That is what
// absorbing does, and what a database is worst at.
//
// The standing rows are made by the verb itself, not copied into the tables: 10^7 refs take
// some minutes that way, the other tables (slots, streams, markers) stand as they would,
// and the package needs to know no table. It is also a measurement, said as fill.
//
// What is measured adds to what stands: a round adds 35,000 refs. So small catalogs (up to
// 10^5 refs) are made anew for each round, and the smallest size is really 2·10^4 to 5·10^4
// refs while it is measured; of a large one it is some per cent.
//
// The bare inserts of a round come together, at its end: SQLite drops the pages that a
// connection has cached when another one writes. Each side warms up with 10,000 rows that
// are not timed, one into every stream.
//
// Everything is written to throw-away places: a file in a directory of its own, a schema of
// its own in the database given. Both go with the end, also after Ctrl-C; what a SIGKILL
// leaves is named strandline-bench-* and strandline_bench_*.
//
//	run.go       the run: databases, sizes, rounds
//	place.go     where a throw-away catalog stands: SQLite's file
//	schema.go    PostgreSQL's schema
//	fill.go      the slots, and what stands
//	samples.go   one measurement each
//	report.go    what --json prints
//	expected.go  what was aimed at
//	pages.go     what SQLite's log took, which explains its growth
//	both/        starts a PostgreSQL server and runs the benchmark on both
package catalogbench
