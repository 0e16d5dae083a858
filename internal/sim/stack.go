package sim

import (
	"hash/fnv"
	"runtime"
	"strings"
	"sync"
)

// frames remembers what the functions at a pc are.
var frames sync.Map // uintptr -> frame

type frame struct {
	hash   uint64
	inline bool
}

// caller names the stack by its functions, whatever the compiler inlined.
func caller() (site uint64, inline bool) {
	var pcs [64]uintptr
	n := runtime.Callers(3, pcs[:])
	site = 14695981039346656037
	for _, pc := range pcs[:n] {
		f := frameOf(pc)
		site = (site ^ f.hash) * 1099511628211
		inline = inline || f.inline
	}
	return site, inline
}

func frameOf(pc uintptr) frame {
	if f, ok := frames.Load(pc); ok {
		return f.(frame)
	}
	h := fnv.New64a()
	var out frame
	for it := runtime.CallersFrames([]uintptr{pc}); ; {
		f, more := it.Next()
		if !strings.HasPrefix(f.Function, "github.com/strandline/strandline/internal/verbs.") {
			_, _ = h.Write([]byte(f.Function))
		}
		out.inline = out.inline || holdsLock(f.Function)
		if !more {
			break
		}
	}
	out.hash = h.Sum64()
	frames.Store(pc, out)
	return out
}

// holdsLock names the functions that hold a mutex over a call, on which other goroutines
// of their process may wait: a goroutine that waits for a mutex is not at rest for
// synctest, so such a call is decided on at once and never parks.
func holdsLock(function string) bool {
	return strings.Contains(function, "/settle.(*lease).") || strings.Contains(function, "/localtier.(*shardLog).raise")
}
