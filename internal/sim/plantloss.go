package sim

import (
	"context"
	"errors"
	"io"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
)

// lossPlants are processes that misread a set of two buckets, or give up what is not lost.
func lossPlants() []Plant {
	requests := func(name string, rules []string, wrap func(name string, d objstore.Driver) objstore.Driver) Plant {
		return Plant{Name: name, Rules: rules, tune: losses, plant: func(cfg *Config) { cfg.Hooks.Requests = wrap }}
	}
	second := func(d objstore.Driver) bool { return d.Name() != (&bucket{}).Name() }
	return []Plant{
		requests("the second bucket of a set is never deleted from", []string{"I3", "I5"}, func(_ string, d objstore.Driver) objstore.Driver {
			if !second(d) {
				return d
			}
			return deletesNothing{d}
		}),
		requests("reads ask the first bucket of a set alone", []string{"I7"}, func(name string, d objstore.Driver) objstore.Driver {
			if !second(d) || name[0] != 'r' && name[0] != 'f' {
				return d
			}
			return hasNothing{d}
		}),
		requests("a loss proven at the first bucket of a set alone", []string{"accept-loss"}, func(name string, d objstore.Driver) objstore.Driver {
			if !second(d) || name[0] != 'o' {
				return d
			}
			return hasNothing{d}
		}),
		requests("a loss proven by a bucket that is away", []string{"accept-loss"}, func(name string, d objstore.Driver) objstore.Driver {
			if name[0] != 'o' {
				return d
			}
			return awayIsGone{d}
		}),
		{Name: "accept-loss gives up another object, too", Rules: []string{"I1"}, tune: losses, plant: func(cfg *Config) {
			cfg.Hooks.Catalog = func(_ string, c catalog.Catalog) catalog.Catalog { return losesMore{c} }
		}},
	}
}

// losses has a set of two, of which objects and copies are lost all the time.
func losses(cfg *Config) { cfg.Buckets, cfg.Losses = 2, 20 }

// deletesNothing says that all is gone.
type deletesNothing struct{ objstore.Driver }

func (d deletesNothing) Delete(_ context.Context, keys []string) ([]objstore.DeleteResult, error) {
	out := make([]objstore.DeleteResult, len(keys))
	for i := range keys {
		out[i].Key = keys[i]
	}
	return out, nil
}

// hasNothing is never asked.
type hasNothing struct{ objstore.Driver }

func (d hasNothing) Get(_ context.Context, key string, _ objstore.Range, _ string) (io.ReadCloser, objstore.Info, error) {
	return nil, objstore.Info{}, &objstore.Error{Op: string(objstore.OpGet), Key: key, Kind: objstore.ErrNotFound}
}

func (d hasNothing) Head(_ context.Context, key string) (objstore.Info, error) {
	return objstore.Info{}, &objstore.Error{Op: string(objstore.OpHead), Key: key, Kind: objstore.ErrNotFound}
}

// awayIsGone takes a fault for the word that there is no such object.
type awayIsGone struct{ objstore.Driver }

func gone(err error) error {
	var e *objstore.Error
	if errors.As(err, &e) && errors.Is(err, objstore.ErrUnavailable) {
		return &objstore.Error{Op: e.Op, Key: e.Key, Kind: objstore.ErrNotFound}
	}
	return err
}

func (d awayIsGone) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	body, info, err := d.Driver.Get(ctx, key, r, ifMatch)
	return body, info, gone(err)
}

func (d awayIsGone) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := d.Driver.Head(ctx, key)
	return info, gone(err)
}

// losesMore gives up what a stream has in the object after the one that was lost.
type losesMore struct{ catalog.Catalog }

func (c losesMore) AcceptLoss(ctx context.Context, key, stream string) ([]catalog.Ref, error) {
	lost, err := c.Catalog.AcceptLoss(ctx, key, stream)
	if err != nil {
		return nil, err
	}
	p, err := c.Plan(ctx, catalog.PlanRequest{Stream: stream, From: lost[len(lost)-1].LastPos().Next(), Limit: 1})
	if err == nil && len(p.Refs) > 0 && p.Refs[0].Key != "" {
		_, _ = c.Catalog.AcceptLoss(ctx, p.Refs[0].Key, stream) // the planted bug
	}
	return lost, nil
}
