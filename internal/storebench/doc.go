// Package storebench measures objstore.Store over a driver beside the bare client of the
// same library, in one run and in pairs, so that the machine's and the store's mood hits
// both:
//
//	for each cell (operation, size, calls in flight)
//	    for each round
//	        ours, bare, bare with the library's defaults   (and back in the next round)
//	    medians, and the median of the ratios of a round
//
//	run.go        Options, Run
//	cells.go      what is measured; contender.go who: bareminio.go, bares3.go, parts.go
//	measure.go    one measurement; report.go medians and ratios
//	clean.go      what was written goes
//
// A measurement is a number of equal operations at a fixed number in flight: throughput,
// CPU seconds of this process (not the store's), the most that the Go heap held above
// where it began, requests. Everything is written under one prefix, meta/doctor/bench- and a random
// id, and is deleted at the end, also after a failure or an interrupt (what a killed run
// left, the next doctor takes along); no other key is
// read or written.
//
// It measures and does not judge: how fast a store must be is nobody's to say here.
package storebench
