// Package tlsfiles makes TLS of files that are replaced while a process runs: certificates
// that are renewed, certificate authorities that come and go.
//
//	server.go  the listening side: certificate and key, and who of the clients may connect
//	client.go  the calling side: whom to believe, and the certificate to show
//	files.go   reading them, and holding them against each other
//
// Contract. TLS 1.2 at least, with the suites of crypto/tls, over HTTP/1.1. With a client CA
// every client has to show a certificate that it signed; without one none is asked for.
// Files are read anew when they change, as a set: a certificate without its key, or a file
// cut in half, leaves the old set in force and is complained about. A new set is for new
// connections, and takes the session tickets of the old one with it; connections that
// stand go on as they are.
//
// It knows no tokens: that is package access. HTTP/2 is not offered, since nothing here
// needs it and its resets and header tables are one more thing to bound; gRPC has a
// listener of its own.
package tlsfiles
