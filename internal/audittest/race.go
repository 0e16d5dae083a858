//go:build race

package audittest

// raceEnabled: the detector makes the catalog's engine some ten times dearer.
const raceEnabled = true
