package sim

import (
	"context"
	"io"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// rollbackPlants are auditors that do not see that the catalog was rolled back, or keep it to
// themselves.
func rollbackPlants() []Plant {
	audits := func(name string) bool { return name[0] == 'a' || name == "end" }
	above := func(name string, wrap func(c catalog.Catalog) catalog.Catalog) Plant {
		return Plant{Name: name, Rules: []string{"03 §0"}, tune: rolledBack, plant: func(cfg *Config) {
			cfg.Hooks.Above = func(name string, c catalog.Catalog) catalog.Catalog {
				if !audits(name) {
					return c
				}
				return wrap(c)
			}
		}}
	}
	return []Plant{
		{Name: "an auditor that finds no heads", Rules: []string{"03 §0"}, tune: rolledBack, plant: func(cfg *Config) {
			cfg.Hooks.Requests = func(name string, d objstore.Driver) objstore.Driver {
				if !audits(name) {
					return d
				}
				return findsNoHeads{d}
			}
		}},
		above("an auditor that looks at one chain's head alone", func(c catalog.Catalog) catalog.Catalog { return knowsNoChains{c} }),
		above("a catalog that was rolled back, and nobody is told", func(c catalog.Catalog) catalog.Catalog { return keepsQuiet{c} }),
	}
}

// rolledBack has the catalog lose commits.
func rolledBack(cfg *Config) { cfg.Rollback = true }

// findsNoHeads takes every chain for one of which no slot has gone.
type findsNoHeads struct{ objstore.Driver }

func (d findsNoHeads) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if strings.HasPrefix(key, segment.RWPrefix) {
		return nil, objstore.Info{}, &objstore.Error{Op: string(objstore.OpGet), Key: key, Kind: objstore.ErrNotFound}
	}
	return d.Driver.Get(ctx, key, r, ifMatch)
}

// knowsNoChains leaves an auditor with the chain of each marker.
type knowsNoChains struct{ catalog.Catalog }

func (c knowsNoChains) Chains(context.Context) ([]catalog.ChainRow, error) { return nil, nil }

// keepsQuiet records nothing of it.
type keepsQuiet struct{ catalog.Catalog }

func (c keepsQuiet) Audit(ctx context.Context, kind, subject, detail string) error {
	if kind == "rolled-back" {
		return nil
	}
	return c.Catalog.Audit(ctx, kind, subject, detail)
}
