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
			hint := meant(name, known)
			if serviceLink(name, vars[name]) {
				hint = "; Kubernetes sets it for a Service of that name: give the pod enableServiceLinks: false"
			}
			errs = append(errs, fmt.Errorf("environment %s: no command has such a flag%s", name, hint))
		}
	}
	return errs
}

// serviceLink says that a variable is one that Kubernetes gives to every pod beside a
// Service called strandline or strandline-…, unless the pod says not to.
func serviceLink(name, value string) bool {
	return strings.HasSuffix(name, "_SERVICE_HOST") || strings.Contains(name, "_SERVICE_PORT") ||
		strings.Contains(name, "_PORT") && strings.Contains(value, "://") || strings.Contains(name, "_PORT_")
}
