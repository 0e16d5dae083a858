package deploycheck

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// faults are what a check found, in words; none is what the files here have.
type faults []string

func (f *faults) add(where, format string, args ...any) {
	*f = append(*f, where+": "+fmt.Sprintf(format, args...))
}

// mutation is one mistake in one file, and what has to be said of it.
type mutation struct{ file, old, by, want string }

// mutated is the files with the mistake in them; one that changes nothing is none.
func (m mutation) mutated(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	if !strings.Contains(files[m.file], m.old) {
		t.Fatalf("%s has no %q", m.file, m.old)
	}
	out := maps.Clone(files)
	out[m.file] = strings.Replace(files[m.file], m.old, m.by, 1)
	return out
}

// seen runs a check over the files as they are, which has to find nothing, and over each
// mistake, which it has to name.
func seen(t *testing.T, files map[string]string, check func(map[string]string) faults, mistakes []mutation) {
	t.Helper()
	for _, f := range check(files) {
		t.Error(f)
	}
	for _, m := range mistakes {
		t.Run(m.want, func(t *testing.T) {
			found := check(m.mutated(t, files))
			for _, f := range found {
				if strings.Contains(f, m.want) {
					return
				}
			}
			t.Errorf("%q instead of %q in %s: nobody says %q, but\n%s", m.by, m.old, m.file, m.want, strings.Join(found, "\n"))
		})
	}
}
