package s3wire

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// URLForm is what a driver's URLs look like, for messages.
type URLForm struct {
	Scheme string
	Want   string // "want minio://HOST:PORT/…"
	Keys   string // the variables that credentials belong into
}

// ParseURL takes a store's URL apart and gives each of its options to option, in the
// order of their names. All that option refuses is told at once. Credentials have no
// place in a URL and are refused.
func ParseURL(raw string, form URLForm, option func(name, value string) error) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The text of err repeats the URL, which may hold a password.
		return nil, fmt.Errorf("store URL: not readable: %s", form.Want)
	}
	if u.User != nil {
		return nil, fmt.Errorf("store URL: it holds credentials: put them into %s", form.Keys)
	}
	if u.Scheme != form.Scheme || u.Host == "" {
		return nil, fmt.Errorf("store URL %s: %s", objstore.Shown(raw), form.Want)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("store URL %s: %w", objstore.Shown(raw), err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		errs = append(errs, option(name, values[len(values)-1]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("store URL %s: %w", objstore.Shown(raw), err)
	}
	return u, nil
}
