//go:build !race

package check_test

const manyObjectsOfTest = 200_000
