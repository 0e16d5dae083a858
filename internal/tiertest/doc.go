// Package tiertest builds a small tier for tests of readers: a bucket in memory, a
// catalog in a file, and one chain whose slots are made from append calls, all on
// one virtual clock.
//
//	tier.go    New, and Slot: seal, publish and absorb appends
//	lives.go   what befalls slots and streams: settle, condemn, delete, walk
//	epoch.go   the next epoch, and what retention gives up
//
// Nothing happens by itself: a test says what is settled, deleted and retired.
package tiertest
