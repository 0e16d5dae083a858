package settings

import (
	"fmt"
	"slices"
	"strings"
)

// prefix of all variables.
const prefix = "STRANDLINE_"

// FileVariable names the settings file where --config does not.
const FileVariable = prefix + "CONFIG"

// testPrefix is left alone: tests of the drivers are told by such.
const testPrefix = prefix + "TEST_"

// Variable is the environment's name of a flag.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// variables are those of ours that are set, by name; an empty one counts, too.
func variables(environ []string) map[string]string {
	out := map[string]string{}
	for _, pair := range environ {
		name, text, ok := strings.Cut(pair, "=")
		if ok && strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, testPrefix) {
			out[name] = text
		}
	}
	return out
}

// strangers are refusals of variables that no command knows.
func (s *Set) strangers(vars map[string]string) []error {
	known := slices.Clone(s.Others)
	for _, name := range s.names() {
		known = append(known, Variable(name))
	}
	known = append(known, FileVariable)
	var errs []error
	for _, name := range sortedKeys(vars) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("environment %s: no command has such a flag%s", name, meant(name, known)))
		}
	}
	return errs
}
