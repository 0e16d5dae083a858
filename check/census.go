package check

import (
	"context"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Count of objects of one kind.
type Count struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Census counts the objects of every bucket by the kind of their key: "slot",
// "stream", "pack", "head", "record", "doctor" and "unknown".
func Census(ctx context.Context, classes objstore.Classes) (map[string]Count, error) {
	counts := map[string]Count{}
	for _, set := range classes {
		for _, store := range set {
			for info, err := range store.List(ctx, "", "") {
				if err != nil {
					return nil, err
				}
				kind := kindOf(info.Key)
				c := counts[kind]
				c.Objects++
				c.Bytes += info.Size
				counts[kind] = c
			}
		}
	}
	return counts, nil
}

func kindOf(key string) string {
	k, err := segment.ParseKey(key)
	if err != nil {
		return "unknown"
	}
	switch k.Kind {
	case segment.KeySlot:
		return "slot"
	case segment.KeyStream:
		return "stream"
	case segment.KeyPack:
		return "pack"
	case segment.KeyHead:
		return "head"
	case segment.KeyDoctor:
		return "doctor"
	default:
		return "record"
	}
}
