//go:build race

package check_test

// The detector makes every look some ten times dearer.
const manyObjectsOfTest = 20_000
