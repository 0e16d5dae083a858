// Package faultstore puts faults between a Store and any driver, by predicate:
//
//	d := faultstore.Wrap(mem, func(c faultstore.Call) faultstore.Fault {
//		if c.Op == objstore.OpComplete {
//			return faultstore.Fault{Kind: faultstore.AnswerLost}
//		}
//		return faultstore.Fault{}
//	})
//
// Sweep drives a whole scenario with the i-th call failing, for every i, in both
// forms of failure: not applied, and applied though the caller saw an error.
//
// It is for tests. Nothing in it is random.
package faultstore
