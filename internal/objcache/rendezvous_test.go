package objcache

import (
	"fmt"
	"math"
	"testing"
)

func of(n int) (out []*instance) {
	for i := range n {
		out = append(out, &instance{addr: fmt.Sprintf("http://cache-%d:8091", i)})
	}
	return out
}

func TestKeysAreDealtEvenly(t *testing.T) {
	const keys = 40_000
	for _, n := range []int{1, 2, 3, 5, 16} {
		ins, count := of(n), map[string]int{}
		for i := range keys {
			count[choose(ins, "d/standard", fmt.Sprintf("seg/00000001.00000000.%016x", i)).addr]++
		}
		want := float64(keys) / float64(n)
		for addr, got := range count {
			if math.Abs(float64(got)-want) > 6*math.Sqrt(want) { // six deviations
				t.Errorf("%d instances: %s has %d keys of about %.0f", n, addr, got, want)
			}
		}
		if len(count) != n {
			t.Errorf("%d of %d instances have keys", len(count), n)
		}
	}
}

// A change of the list moves only the keys of what came or went.
func TestKeysMoveLittle(t *testing.T) {
	const keys = 10_000
	all := of(5)
	for gone := range all {
		fewer := append(append([]*instance{}, all[:gone]...), all[gone+1:]...)
		moved := 0
		for i := range keys {
			key := fmt.Sprintf("pack/%x", i)
			before, after := choose(all, "b", key), choose(fewer, "b", key)
			if before == all[gone] {
				moved++
			} else if before != after {
				t.Fatalf("%s moved from %s to %s, though %s went", key, before.addr, after.addr, all[gone].addr)
			}
		}
		if moved < keys/5-400 || moved > keys/5+400 {
			t.Errorf("%d of %d keys moved with one of five instances", moved, keys)
		}
	}
	reversed := []*instance{all[4], all[3], all[2], all[1], all[0]}
	differs := false
	for i := range 100 {
		key := fmt.Sprintf("seg/%d", i)
		if choose(all, "b", key) != choose(reversed, "b", key) {
			t.Fatal("the order of the list counts")
		}
		differs = differs || choose(all, "b", key) != choose(all, "c", key)
	}
	if !differs {
		t.Error("all buckets deal alike")
	}
	if choose(nil, "b", "k") != nil {
		t.Error("nobody is somebody")
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"cache-0:8091": "http://cache-0:8091", "http://Cache-0:8091/": "http://cache-0:8091", "https://[::1]:1": "https://[::1]:1",
		"": "", "cache": "", "http://cache": "", "ftp://a:1": "", "http://a:1/x": "", "http://u:p@a:1": "", "a:1?x=1": "", ":80": "",
	} {
		got, err := address(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if err := (Config{Instances: []string{"a:1", "http://a:1"}}).Validate(); err == nil {
		t.Error("an instance that is named twice gets twice the keys")
	}
	if err := (Config{Instances: []string{"a:1", "b:1"}, Rest: -1}).Validate(); err == nil {
		t.Error("a pause of -1ns was taken")
	}
}
