package payload

import "testing"

func TestNumber(t *testing.T) {
	z := Sizes{Fat: "fat/", Least: 8 << 10, Spread: 100}
	for _, stream := range []string{"s", "fat/x"} {
		row := z.Row(stream, 7)
		if fat := len(row) >= 8<<10; fat != (stream == "fat/x") {
			t.Errorf("%s: %d bytes", stream, len(row))
		}
		if n, ok := z.Number(stream, string(row)); n != 7 || !ok {
			t.Errorf("%s: row %d, %v", stream, n, ok)
		}
		for i := range row {
			changed := append([]byte(nil), row...)
			changed[i] ^= 1
			if _, ok := z.Number(stream, string(changed)); ok {
				t.Errorf("%s: byte %d may be another", stream, i)
			}
		}
		for _, p := range []string{"", stream, stream + "|7", string(row[:len(row)-1]), string(row) + "A"} {
			if _, ok := z.Number(stream, p); ok {
				t.Errorf("%s: taken: %.40q", stream, p)
			}
		}
	}
}
