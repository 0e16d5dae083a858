package main

import (
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// A start that waits says what for after sayAfter, and again every sayEvery: a store that
// takes connections and stays silent, or a lock that another process holds, may take a minute.
const (
	sayAfter = 2 * time.Second
	sayEvery = 15 * time.Second
)

// waiting does what may wait for long.
func waiting(log *slog.Logger, what string, do func() error) error {
	if log == nil {
		return do()
	}
	done, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		timer := time.NewTimer(sayAfter)
		defer timer.Stop()
		for begun := time.Now(); ; {
			select {
			case <-timer.C:
				log.Warn("waiting at the start", "for", what, "since", time.Since(begun).Round(time.Second).String())
				timer.Reset(sayEvery)
			case <-done:
				return
			}
		}
	}()
	defer func() { close(done); <-said }()
	return do()
}

func (b *backendFlags) waiting(what string, do func() error) error {
	return waiting(b.cache.log, what, do)
}

// shownCatalog is a catalog's URL without what may be secret.
func shownCatalog(raw string) string {
	u, err := url.Parse(raw)
	if (err != nil || u.Scheme == "") && strings.ContainsAny(raw, "=@") { // keywords of a driver, and one of them a password
		return "…"
	}
	if err != nil || u.Opaque != "" {
		return objstore.Shown(raw)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
