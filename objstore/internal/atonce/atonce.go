package atonce

import "sync"

// Run calls f(0) … f(n-1) from a goroutine each, which all wait for the last to be there,
// and returns what they gave, in that order, once all have ended.
func Run[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}
