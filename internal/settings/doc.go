// Package settings gives flags their values from three places: the command line, then the
// environment, then a YAML file, in that order of precedence; and says of each value where
// it came from.
//
//	http: 127.0.0.1:8420          # for every command that has --http
//	segment-size: 64MiB
//	store:                        # a flag that may be given more than once takes a list
//	  - standard=s3://logs/tier?region=eu-central-1
//	writer:                       # for this command only; goes before what is common
//	  shards: 0-3
//	topology:
//	  set:
//	    retention: interest
//
// A key is the flag's name, a variable STRANDLINE_ and that name in capitals with
// underscores. The flags themselves read the values, so all three places take the same
// texts and say the same about wrong ones. A key or variable that no command knows, a
// value of a wrong kind and a key that stands twice are refused with the place and the
// nearest name, all at once: a typo never goes unnoticed.
//
//	file.go    the YAML file: its keys, its values, and where they stand
//	apply.go   Set: all commands with their flags, and how the three places reach them
//	fromfile.go the file's sections, then what is common
//	names.go   which flags and commands there are
//	setflag.go a text into a flag, and what is said of one that does not fit
//	environ.go the variables
//	nearest.go the nearest known name
//	knob.go    what is said of each knob of a service: range, and tunable or invariant
//	table.go   those knobs
//	margins.go the safety margins that follow from one another
//	shown.go   values without what is secret in them
//
// It opens nothing but the file, and knows no command: cmd hands in what there is.
package settings
