//go:build !race

package audittest

const raceEnabled = false
