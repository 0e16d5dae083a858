//go:build race

package wal_test

// raceEnabled: the race detector makes everything an order slower.
const raceEnabled = true
