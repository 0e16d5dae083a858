// Package atonce lets calls begin at the same moment, for races whose outcome somebody
// wants to see: the conformance suites', the findings' and doctor's.
package atonce
