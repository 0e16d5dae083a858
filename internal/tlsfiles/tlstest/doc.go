// Package tlstest makes certificates for tests: authorities, and who is signed by them.
// Nothing that ships imports it.
//
//	tlstest.go	an authority, and certificates of servers and clients as files
package tlstest
