package settings

// The units, as values are written.
const (
	unitDuration = "duration, as 10m"
	unitSize     = "size, as 64MiB"
	unitRate     = "size a second, as 64MiB"
	unitAddress  = "HOST:PORT"
	unitURL      = "URL"
	unitFile     = "file"
	unitDir      = "directory"
	unitBool     = "true or false"
	unitCount    = "number"
	unitWord     = "word"
	unitList     = "list"
)

// Knobs is what is said of every flag of the services: up, writer, auditor, reader, cache.
// Those of the local log have seed 001's ranges.
func Knobs() []Knob {
	return concat(common(), listening(), owning(), auditing(), caching())
}

func concat(groups ...[]Knob) []Knob {
	var all []Knob
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func common() []Knob {
	return []Knob{
		{Name: "json", Unit: unitBool, Class: Tunable},
		{Name: "log-level", Unit: unitWord, Class: Tunable, Range: "debug, info, warn, error", Above: "loud"},
		{Name: "dir", Unit: unitDir, Class: Invariant, Range: "each writer its own, and the same at every start: its segments are there"},
		{Name: "store", Unit: "CLASS=URL[,URL…]", Class: Invariant, Range: "the same buckets in the same order for every process"},
		{Name: "catalog", Unit: unitURL, Class: Invariant, Range: "the same for every process"},
		{Name: "catalog-max-conns", Unit: unitCount, Class: Tunable, Range: "PostgreSQL only", Least: "2", Most: "1000", Below: "1", Above: "1001"},
		{Name: "object-cache-instances", Unit: "HOST:PORT,…", Class: Invariant, Range: "the same list for every process: deletes go by it"},
		{Name: "accept-versioned", Unit: unitBool, Class: Tunable},
		{Name: "token-from", Unit: unitFile, Class: Tunable},
		{Name: "allow-plain-token", Unit: unitBool, Class: Tunable},
		{Name: "ca", Unit: unitFile, Class: Tunable},
		{Name: "client-cert", Unit: unitFile, Class: Tunable, Range: "together with --client-key"},
		{Name: "client-key", Unit: unitFile, Class: Tunable, Range: "together with --client-cert"},
	}
}

func listening() []Knob {
	return []Knob{
		{Name: "http", Unit: unitAddress, Class: Tunable, Range: "loopback, unless there is authentication and TLS, or --allow-remote", Above: "0.0.0.0:1"},
		{Name: "advertise", Unit: unitURL, Class: Tunable, Range: "http or https, without a password", Above: "here"},
		{Name: "allow-remote", Unit: unitBool, Class: Tunable},
		{Name: "drain-delay", Unit: unitDuration, Class: Tunable, Range: "below --shutdown-timeout", Least: "0s", Most: "5m", Below: "-1s", Above: "301s"},
		{Name: "shutdown-timeout", Unit: unitDuration, Class: Tunable, Least: "1ms", Most: "1h", Below: "0s", Above: "61m"},
		{Name: "token-file", Unit: unitFile, Class: Tunable},
		{Name: "tls-cert", Unit: unitFile, Class: Tunable, Range: "together with --tls-key", Above: "no-key-beside-it"},
		{Name: "tls-key", Unit: unitFile, Class: Tunable, Range: "together with --tls-cert", Above: "no-cert-beside-it"},
		{Name: "tls-client-ca", Unit: unitFile, Class: Tunable},
		{Name: "telemetry-otlp", Unit: unitURL, Class: Tunable, Range: "http, https, grpc or grpcs, without a password", Above: "collector"},
		{Name: "telemetry-interval", Unit: unitDuration, Class: Tunable, Least: "1s", Most: "1h", Below: "999ms", Above: "61m"},
		{Name: "follow-poll", Unit: unitDuration, Class: Tunable, Least: "50ms", Most: "1m", Below: "49ms", Above: "61s"},
	}
}

func owning() []Knob {
	return []Knob{
		{Name: "shards", Unit: unitCount, Class: Invariant, Range: "of a new deployment; later: topology set", Least: "1", Below: "0", Most: "65536", Above: "65537", Commands: []string{"up"}},
		{Name: "shards", Unit: "0-3,7", Class: Tunable, Range: "numbers and ranges below 65536", Above: "65536", Commands: []string{"writer"}},
		{Name: "shard-index", Unit: unitCount, Class: Tunable, Range: "below --shard-count", Above: "1"},
		{Name: "shard-count", Unit: unitCount, Class: Tunable, Range: "together with --shard-index", Above: "1"},
		{Name: "steal", Unit: unitBool, Class: Tunable},
		{Name: "ack", Unit: unitWord, Class: Tunable, Range: "local, shared", Above: "maybe"},
		{Name: "segment-size", Unit: unitSize, Class: Tunable, Least: "17MiB", Most: "2GiB", Below: "16MiB", Above: "2049MiB"},
		{Name: "segment-age", Unit: unitDuration, Class: Tunable, Least: "1s", Most: "24h", Below: "999ms", Above: "24h1s"},
		{Name: "batch-window", Unit: unitDuration, Class: Tunable, Least: "0s", Most: "10s", Below: "-1ms", Above: "10001ms"},
		{Name: "preallocate", Unit: unitWord, Class: Tunable, Range: "auto, off", Above: "maybe"},
		{Name: "spare-files", Unit: unitCount, Class: Tunable, Least: "1", Most: "64", Below: "0", Above: "65"},
		{Name: "full-fsync", Unit: unitBool, Class: Tunable, Range: "changes something on macOS only"},
		{Name: "housekeeping", Unit: unitDuration, Class: Tunable, Least: "1s", Most: "1h", Below: "999ms", Above: "61m"},
		{Name: "shared-window", Unit: unitDuration, Class: Tunable, Range: "above 0", Most: "10s", Below: "0s", Above: "10001ms"},
		{Name: "lease-time", Unit: unitDuration, Class: Tunable, Least: "1s", Most: "1h", Below: "999ms", Above: "61m"},
		{Name: "min-free-disk", Unit: unitSize, Class: Tunable, Range: "0: not checked"},
		{Name: "consumer-hold-max", Unit: unitSize, Class: Tunable, Least: "64MiB", Below: "63MiB"},
		{Name: "quarantine-max", Unit: unitSize, Class: Tunable, Range: "above 0", Below: "0"},
		{Name: "retention-every", Unit: unitDuration, Class: Tunable, Least: "10ms", Below: "9ms"},
		{Name: "otlp-grpc", Unit: unitAddress, Class: Tunable, Range: "loopback, unless there is authentication and TLS, or --allow-remote", Above: "0.0.0.0:1"},
		{Name: "otlp-stream-attribute", Unit: unitWord, Class: Tunable, Range: "an attribute's name"},
		{Name: "otlp-default-stream", Unit: unitWord, Class: Tunable, Range: "a stream's name", Above: "~audit/0"},
		{Name: "otlp-ack", Unit: unitWord, Class: Tunable, Range: "local, shared; empty: as --ack", Above: "maybe"},
		{Name: "otlp-keep-repeats", Unit: unitBool, Class: Tunable},
		{Name: "hydrate-all", Unit: unitBool, Class: Tunable},
		{Name: "ack-after-lease", Unit: unitBool, Class: Tunable},
	}
}

func auditing() []Knob {
	return []Knob{
		{Name: "auditor-read-grace", Unit: unitDuration, Class: Invariant, Range: "at most the orphan grace; only seeds the catalog's setting", Least: "1s", Below: "999ms", Above: "2h"},
		{Name: "auditor-orphan-grace", Unit: unitDuration, Class: Invariant, Range: "at least the read grace; only seeds the catalog's setting", Least: "5s", Below: "4s", Above: "5m"},
		{Name: "settle-age", Unit: unitDuration, Class: Tunable, Least: "0s", Below: "-1s"},
		{Name: "settle-bytes", Unit: unitSize, Class: Tunable},
		{Name: "budget-bytes", Unit: unitRate, Class: Invariant, Range: "the same for all auditors; 0: no bound", Least: "1MiB", Below: "1023KiB"},
		{Name: "budget-requests", Unit: unitCount + " a second", Class: Invariant, Range: "the same for all auditors; 0: no bound", Least: "0", Below: "-1"},
		{Name: "gc-least", Unit: unitSize, Class: Tunable, Range: "above 0", Below: "0"},
		{Name: "tail-fill-target", Unit: unitSize, Class: Tunable, Range: "above 0", Below: "0"},
		{Name: "stream-object-min", Unit: unitSize, Class: Tunable, Range: "above 0", Most: "64MiB", Below: "0", Above: "65MiB"},
		{Name: "pack-merge-fan", Unit: unitCount, Class: Tunable, Least: "2", Most: "64", Below: "1", Above: "65"},
		{Name: "auditor-lease", Unit: unitDuration, Class: Invariant, Range: "the same for all auditors: budgets are shared by it", Least: "1s", Most: "1h", Below: "0s", Above: "61m"},
		{Name: "settle-lease", Unit: unitDuration, Class: Tunable, Least: "1s", Most: "1h", Below: "0s", Above: "61m"},
		{Name: "dry-run", Unit: unitBool, Class: Tunable, Range: "with --once", Above: "true"},
		{Name: "duty", Unit: unitList, Class: Tunable, Range: "the names of duties; empty: all", Above: "dance"},
		{Name: "linger", Unit: unitDuration, Class: Tunable, Range: "with --once", Above: "1s"},
		{Name: "once", Unit: unitBool, Class: Tunable},
		{Name: "sweep", Unit: unitBool, Class: Tunable},
	}
}

func caching() []Knob {
	return []Knob{
		{Name: "cache-dir", Unit: unitDir, Class: Tunable, Range: "each instance its own"},
		{Name: "cache-bytes", Unit: unitSize, Class: Tunable, Least: "64MiB", Below: "63MiB"},
		{Name: "listen", Unit: unitAddress, Class: Tunable, Above: "here"},
		{Name: "max-age", Unit: unitDuration, Class: Tunable, Range: "above 0", Below: "0s"},
	}
}
