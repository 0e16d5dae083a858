// Package pgserver runs real PostgreSQL servers on loopback, for tests and for the
// benchmark of the catalog.
//
//	Shared(t)          one server a test binary; NewDatabase(t) an empty database a test
//	Start(t, Options)  a server of the test's own, which it may Stop, Kill and Restart
//	  .Standby(t, sync)  a copy that streams from it, synchronous or not
//	  .Promote(t)        makes that copy the primary
//	Open(ctx, Options) the same for a program without a testing.T
//
// The programs are those of /usr/lib/postgresql or of pg_config; where there are none,
// they are installed with apt-get, once for all test binaries that ask at the same time.
// Nothing is skipped: a server that does not install or start fails the test and says why.
//
// PostgreSQL refuses to run as root, so under root it runs as the user postgres, otherwise
// as ourselves. Its data, its log and its socket stand in a throw-away directory of its
// own. It listens on 127.0.0.1 only, and asks for a password that is drawn at its start.
//
// A server ends in the test's clean-up, by its process id. Whatever else ends the test
// binary (a panic, a timeout, SIGKILL), a keeper sees to: a shell that reads from a pipe
// of ours. When we are gone the pipe closes, and the keeper ends the server and removes the
// directory. So there is no TestMain to write, no goroutine that a leak check would find,
// and no thread that must live as long as the server (which a parent death signal needs).
//
// The package administers servers; no table of the catalog is known here.
//
//	programs.go  where the programs are, and how they get there
//	server.go    a server and how it is started
//	end.go       stop, kill, restart
//	settings.go  what its configuration says
//	keeper.go    what ends a server when we are gone
//	processes_*.go a server's child processes
//	replica.go   standby and promotion
//	testing.go   one server a test binary, databases, clean-up
package pgserver
