package main

import "github.com/spf13/pflag"

// accessFlags will say who may call, and over what: until then nobody is asked.
type accessFlags struct{}

func (*accessFlags) register(*pflag.FlagSet) {}
func (*accessFlags) validate() error         { return nil }

// secured says that callers have to prove who they are.
func (*accessFlags) secured() bool { return false }
