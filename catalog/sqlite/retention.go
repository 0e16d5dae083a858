package sqlite

import (
	"context"
	"errors"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func (*DB) SetTopologyState(context.Context, segment.Epoch, catalog.TopologyState, catalog.TopologyState) (catalog.Topology, error) {
	return catalog.Topology{}, errors.ErrUnsupported
}

func (*DB) SetRetention(context.Context, segment.Epoch, catalog.Retention) (catalog.Topology, error) {
	return catalog.Topology{}, errors.ErrUnsupported
}

func (*DB) AckClosed(context.Context, segment.Chain, string, segment.Seq) (catalog.ChainRow, error) {
	return catalog.ChainRow{}, errors.ErrUnsupported
}

func (*DB) RaiseWatermark(context.Context, catalog.Watermark) (catalog.ChainRow, error) {
	return catalog.ChainRow{}, errors.ErrUnsupported
}

func (*DB) DeadRefs(context.Context, segment.Chain, int) ([]catalog.Ref, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func (*DB) StraddlingRefs(context.Context, segment.Chain, *catalog.Ref, int) ([]catalog.Ref, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func (*DB) Marker(context.Context, catalog.Duty, string) (catalog.Marker, error) {
	return catalog.Marker{}, errors.ErrUnsupported
}
