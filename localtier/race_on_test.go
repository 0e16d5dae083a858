//go:build race

package localtier

// raceEnabled: each step costs some times more, so there are fewer.
const raceEnabled = true
