// Package verbs puts one function around every verb of a catalog: whoever counts verbs,
// makes them fail, or makes each a step writes that function, and no method a verb.
//
//	verbs.Around(cat, func(ctx, v, do) error {
//		before(v)
//		err := do(ctx)      // or not at all
//		return after(v, err)
//	})
//
//	around.go   Verb, Func, Around
//	verbs.go    one method a verb of founding, owning and moving
//	judging.go  of judging, deleting and reading
//
// An error of the function is the verb's answer, and its results are zero then, also if do
// was called and went well: so an answer is lost that was applied. Close is not a verb.
//
// What it does not do: decide, retry, or know what a verb means.
package verbs
