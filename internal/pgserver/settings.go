//go:build unix

package pgserver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what differs from an ordinary server.
type Options struct {
	// NoSync turns fsync off. What a test reads back from a server that was not cut from
	// its power does not depend on it: a SIGKILL loses nothing that was handed to the
	// operating system. It is on by default because a standby, a benchmark and whoever
	// measures a commit want what an operator has.
	NoSync bool
	// Settings are further lines of postgresql.conf, name and value.
	Settings map[string]string
}

// superuser is the one user's name in every server.
const superuser = "strandline"

// confName holds our settings; postgresql.conf includes it last.
const confName = "strandline.conf"

// writeSettings replaces our part of the configuration. Each server has its own, a
// standby too: what makes a primary wait for a standby must not come along with a copy.
func (s *Server) writeSettings() error {
	all := map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": s.dir,
		// The port comes by the command line: a copy must not take its primary's.
		"max_connections": "200", "shared_buffers": "64MB", "max_wal_senders": "8",
		"wal_keep_size": "256MB", // a standby that was stopped for a while finds what it missed
		"hot_standby":   "on", "logging_collector": "off", "log_checkpoints": "off",
		// A standby that lost its primary asks again soon, so that a test is not kept waiting.
		"wal_retrieve_retry_interval": "250ms", "wal_receiver_timeout": "5s",
	}
	if s.options.NoSync {
		all["fsync"], all["full_page_writes"] = "off", "off"
	}
	maps.Copy(all, s.options.Settings)
	if s.primary != nil {
		all["primary_conninfo"] = fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s application_name=%s sslmode=disable connect_timeout=5",
			s.primary.port, superuser, s.password, s.name)
	}
	if len(s.awaits) > 0 {
		all["synchronous_standby_names"] = "FIRST 1 (" + strings.Join(s.awaits, ", ") + ")"
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	return s.writeFile(filepath.Join("data", confName), text.String())
}

// writeFile makes a file that the server's user reads.
func (s *Server) writeFile(name, text string) error {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return s.owned(path)
}
