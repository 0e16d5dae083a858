package catalog

import "github.com/strandline/strandline/segment"

// LiveIn is where the stream's rows of an epoch live from, which matters for epochs of
// the plan's refs, of the rows before them, and of the stream's last row.
func (p *Plan) LiveIn(e segment.Epoch) segment.Pos {
	if cut, ok := p.Cuts[e]; ok {
		return cut
	}
	return p.Stream.LiveFrom
}

// Dead says whether a row was given up: by a trim, or by its own chain's watermark.
func (p *Plan) Dead(at segment.Pos) bool { return at.Less(p.LiveIn(at.Epoch)) }

// Linked says whether no live row is missing between last and the ref: last is the last
// row of the ref before, or, for the first one, the position that reading begins at.
//
// An older epoch's rows are kept by their own chain. So where the row before the ref was
// given up by the ref's chain, an older epoch's row comes before it, and no link says
// which: that gap is as silent as what lies below a watermark. Within one chain what is
// given up lies before all that is kept, so no gap of a chain's own passes here.
func (p *Plan) Linked(r *Ref, last segment.Pos, first bool) bool {
	return r.Follows(last, first) || last.Less(r.PrevLast) && p.Dead(r.PrevLast)
}

// Planner puts a plan together out of a stream's refs.
type Planner struct {
	Plan
	// From and To bound what is of use: refs that end before From or begin behind To are
	// not to be given.
	From, To segment.Pos

	request PlanRequest
	limit   int
	live    func(segment.Epoch) (segment.Pos, error)
}

// NewPlanner begins one. live says where the stream's rows live from in the chain that
// an epoch has for it (EffectiveLiveFrom); of an unknown epoch, the stream's own.
func NewPlanner(s Stream, r PlanRequest, limit int, live func(segment.Epoch) (segment.Pos, error)) (*Planner, error) {
	p := &Planner{Plan: Plan{Stream: s, LiveFrom: s.LiveFrom}, To: r.To, request: r, limit: limit, live: live}
	if p.To == (segment.Pos{}) {
		p.To = s.Last
	}
	if err := p.cutIn(s.Last.Epoch); err != nil {
		return nil, err
	}
	if r.From != (segment.Pos{}) {
		if err := p.cutIn(r.From.Epoch); err != nil {
			return nil, err
		}
		p.LiveFrom = p.LiveIn(r.From.Epoch)
	}
	p.From = later(r.From, p.LiveFrom)
	return p, nil
}

// Take takes the next ref, in order; full says that the plan needs no more.
func (p *Planner) Take(l *LiveRef) (full bool, err error) {
	if l.LastPos().Less(p.From) || l.Dead(l.LiveFrom) {
		return false, nil // the head of the first, or what its chain gave up
	}
	if len(p.Refs) == p.limit {
		p.More = true
		return true, nil
	}
	p.cut(l.LiveFrom)
	first, last := len(p.Refs) == 0, p.From
	if !first {
		last = p.Refs[len(p.Refs)-1].LastPos()
	}
	if !l.Follows(last, first) {
		if err := p.cutIn(l.PrevLast.Epoch); err != nil {
			return false, err
		}
	}
	if first {
		p.begin(l)
	}
	p.Refs = append(p.Refs, l.Ref)
	return false, nil
}

// begin says where reading begins, by the first ref.
func (p *Planner) begin(l *LiveRef) {
	switch from := p.request.From; {
	case from == (segment.Pos{}):
		if p.Dead(l.PrevLast) {
			p.LiveFrom = later(p.LiveFrom, p.LiveIn(l.PrevLast.Epoch))
		}
		p.LiveFrom = later(p.LiveFrom, l.LiveFrom)
	case from.Epoch < l.Epoch && l.PrevLast.Less(from) && !from.Less(p.Stream.LiveFrom):
		// A reader that was through with an epoch, whose chain then gave it all up: no row
		// was given up behind it.
		p.LiveFrom = p.Stream.LiveFrom
	}
}

// Done is the plan.
func (p *Planner) Done() Plan {
	if len(p.Refs) == 0 && p.request.From == (segment.Pos{}) && p.request.To == (segment.Pos{}) {
		p.LiveFrom = p.LiveIn(p.Stream.Last.Epoch) // nothing is left of any epoch
	}
	return p.Plan
}

// cutIn notes what the chain of an epoch gave up.
func (p *Planner) cutIn(e segment.Epoch) error {
	if _, ok := p.Cuts[e]; ok {
		return nil
	}
	live, err := p.live(e)
	if err == nil {
		p.cut(live)
	}
	return err
}

func (p *Planner) cut(live segment.Pos) {
	if !p.Stream.LiveFrom.Less(live) {
		return
	}
	if p.Cuts == nil {
		p.Cuts = make(map[segment.Epoch]segment.Pos)
	}
	p.Cuts[live.Epoch] = live
}

func later(a, b segment.Pos) segment.Pos {
	if a.Less(b) {
		return b
	}
	return a
}
