package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/strandline/strandline/catalog"
)

// errMoved: a row that was read without a lock is not what stands any more. Nothing
// happened; the verb is run again and decides anew.
var errMoved = errors.New("a row moved while the verb ran")

// SQLSTATE codes that decide something.
const (
	codeByZero       = "22012" // moment refuses
	codeUnique       = "23505"
	codeReadOnly     = "25006" // a standby, or a primary that was demoted
	codeSerialize    = "40001"
	codeDeadlock     = "40P01"
	codePassword     = "28P01"
	codeNoLogin      = "28000"
	codeNoDatabase   = "3D000"
	codeNoRight      = "42501"
	codeNoParameter  = "42704" // of a session that is begun
	codeDiskFull     = "53100"
	codeTooMany      = "53300"
	codeLockTimeout  = "55P03"
	codeCanceled     = "57014"
	codeAdminEnd     = "57P01"
	codeCrash        = "57P02"
	codeCannotAccept = "57P03"
	codeDropped      = "57P04"
	codeInternal     = "XX000"

	// The session waited for its client for too long, in a transaction, with one, or without
	// one. What was sent behind that was not looked at.
	codeIdleInTx    = "25P03"
	codeTxTimeout   = "25P04"
	codeIdleSession = "57P05"
)

func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// conflicted: the transaction lost against another and certainly did not commit. A
// unique key is one of these: a row came where the verb had seen none.
func conflicted(err error) bool {
	switch codeOf(err) {
	case codeSerialize, codeDeadlock, codeUnique:
		return true
	}
	return errors.Is(err, errMoved)
}

// gone: this server does not serve, or not any more. Another one of the DSN may.
func gone(err error) bool {
	if err == nil || catalog.KindOf(err) != nil || errors.Is(err, errMoved) {
		return false
	}
	code := codeOf(err)
	switch code {
	case codeInternal:
		return noSession(err)
	case codeReadOnly, codeTooMany, codeAdminEnd, codeCrash, codeCannotAccept, codeIdleInTx, codeTxTimeout, codeIdleSession:
		return true
	case "":
		return brokenWire(err)
	}
	return code[:2] == "08"
}

// noSession: the server began no session, for a reason that it has no code for. That says
// nothing of its data: on a full disk it cannot write the file that each new session reads.
func noSession(err error) bool {
	var connect *pgconn.ConnectError
	return codeOf(err) == codeInternal && errors.As(err, &connect)
}

// brokenWire: no server answered, or its answer was cut.
func brokenWire(err error) bool {
	var connect *pgconn.ConnectError // its timeout is not the caller's context
	if errors.As(err, &connect) {
		return true
	}
	var wire net.Error
	return !ctxErr(err) && (errors.As(err, &wire) || pgconn.SafeToRetry(err) || isEOF(err))
}

// kindOf maps an error to one of catalog's kinds, nil if it is none of the server's.
func kindOf(err error) error {
	code := codeOf(err)
	switch {
	case code == codeDiskFull:
		return catalog.ErrNoSpace
	case noSession(err):
		return catalog.ErrUnavailable
	case code == codeUnique, code == codeDropped, len(code) == 5 && slices.Contains([]string{"23", "XX"}, code[:2]):
		return catalog.ErrCorrupt
	case conflicted(err), gone(err), code == codeLockTimeout, code == codeCanceled, len(code) == 5 && slices.Contains([]string{"53", "57", "58"}, code[:2]):
		return catalog.ErrUnavailable
	}
	return nil // a statement of ours is wrong, or too much was asked
}

// mapError gives an error its kind, once, with what was being done. Nothing happened.
func mapError(doing string, err error) error {
	if err == nil || catalog.KindOf(err) != nil {
		return err
	}
	if ctxErr(err) {
		return fmt.Errorf("%w: %s: %w", catalog.ErrUnavailable, doing, err)
	}
	kind := kindOf(err)
	if kind == nil {
		return fmt.Errorf("catalog: %s: %w%s", doing, err, refusedFor(err))
	}
	return fmt.Errorf("%w: %s: %w%s", kind, doing, err, nextStep(kind, err))
}

// nextStep is what an operator may do about it.
func nextStep(kind, err error) string {
	switch code := codeOf(err); {
	case errors.Is(kind, catalog.ErrCorrupt):
		return "; stop all processes, keep a copy of the database, restore it or run rebuild"
	case errors.Is(kind, catalog.ErrNoSpace):
		return "; make room on the disk of PostgreSQL"
	case code == codeReadOnly, readOnlyServer(err):
		return "; no server of the DSN takes writes: promote one, or name the primary, and look for default_transaction_read_only"
	case noSession(err):
		return "; PostgreSQL begins no session: look at its log, and at the room on its disk"
	case code == codeTooMany:
		return "; raise max_connections, or lower the pools' size"
	case code == codeLockTimeout, code == codeCanceled:
		return "; the server was too slow or a lock was held for too long: look at pg_stat_activity"
	case noTLS(err):
		return "; check that sslmode and sslrootcert of the DSN fit the server"
	case gone(err):
		return "; check that PostgreSQL runs and that the DSN names all its hosts"
	}
	return ""
}

// refusedFor is what to do where the server does not let us in, and would not the next time.
func refusedFor(err error) string {
	var connect *pgconn.ConnectError
	switch code := codeOf(err); {
	case code == codePassword:
		return "; give the password of the DSN's user in PGPASSWORD, PGPASSFILE or ~/.pgpass, or correct the user"
	case code == codeNoLogin:
		return "; correct the DSN's user, or let it in: its role needs LOGIN, and pg_hba.conf a line for it"
	case code == codeNoDatabase:
		return "; correct the DSN's database, or create it if this deployment is a new one"
	case code == codeNoRight:
		return "; name the user that owns the catalog's schema, or GRANT this one what it lacks (a first start: CREATE on the database)"
	case code == codeNoParameter && errors.As(err, &connect):
		return "; correct the DSN's parameters"
	}
	return ""
}

// noTLS: the server was reached, and no session of TLS came about. The driver has no kind
// for that.
func noTLS(err error) bool {
	var connect *pgconn.ConnectError
	return codeOf(err) == "" && errors.As(err, &connect) && strings.Contains(err.Error(), "tls error: ")
}

// readOnlyServer: the driver asked a server that answered, and takes no writes. It has no
// kind for that.
func readOnlyServer(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) && strings.Contains(err.Error(), "ValidateConnect failed: read only connection")
}

func ctxErr(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
