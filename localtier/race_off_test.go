//go:build !race

package localtier

const raceEnabled = false
