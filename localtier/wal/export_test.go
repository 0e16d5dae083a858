package wal

// Eager makes a log keep and use every spare file, however small, write zeros
// ahead of every write, and write the smallest runs in pieces.
func (c Config) Eager() Config {
	c.tune = tuning{spareMin: 1, aheadFrom: 1, aheadBytes: 10_000, aheadRun: 1 << 20, writePiece: 64}
	return c
}
