package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// many says that a flag may be given more than once.
func many(f *pflag.Flag) bool {
	_, is := f.Value.(pflag.SliceValue)
	return is
}

// set leaves the default where the text is none: pflag leaves a zero, which would be
// complained about once more.
func set(flags *pflag.FlagSet, name, text string) error {
	err := flags.Set(name, text)
	if err == nil {
		return nil
	}
	if f := flags.Lookup(name); !many(f) {
		_ = f.Value.Set(f.DefValue) // it was one at the registration
	}
	return bare(err)
}

// bare is pflag's error without its talk of the command line, and what to write instead.
func bare(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || invalid.Unwrap() == nil {
		return err
	}
	switch kind := invalid.GetFlag().Value.Type(); kind {
	case "bool":
		return fmt.Errorf("%q: give true or false", invalid.GetValue())
	case "duration":
		return fmt.Errorf("%q: give a duration like 10m or 250ms", invalid.GetValue())
	case "int", "int64", "uint32", "uint64", "int32", "uint":
		return fmt.Errorf("%q: give a whole number", invalid.GetValue())
	default:
		return fmt.Errorf("%q: %w", invalid.GetValue(), invalid.Unwrap())
	}
}
