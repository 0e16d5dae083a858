package settings

// Class says who may change a knob.
type Class string

const (
	// Tunable: any process may have another value at its next start; nothing is lost or
	// read wrongly by it.
	Tunable Class = "tunable"
	// Invariant: what the deployment is made of. It is the same for all its processes, or
	// settled for good by the first start; a change has a command of its own or needs care.
	Invariant Class = "invariant"
)

// Knob is what is said of a flag of a service, beside its own help.
type Knob struct {
	Name string
	// Unit of the value, as it is written.
	Unit  string
	Class Class
	// Range in words; empty: whatever the flag's type takes.
	Range string
	// Least and Most are the ends of the range as they are written; a value beyond them is
	// refused. Empty: no such end.
	Least, Most string
	// Below and Above are values just outside of them, for the tests.
	Below, Above string
	// Commands that have it with this meaning; empty: all that have such a flag.
	Commands []string
}

// Text is the range in words.
func (k Knob) Text() string {
	ends := ""
	switch {
	case k.Least != "" && k.Most != "":
		ends = k.Least + " to " + k.Most
	case k.Least != "":
		ends = k.Least + " or more"
	case k.Most != "":
		ends = "at most " + k.Most
	}
	switch {
	case ends == "":
		return k.Range
	case k.Range == "":
		return ends
	default:
		return ends + "; " + k.Range
	}
}

// Find is what is said of a command's flag.
func Find(command, flag string) (Knob, bool) {
	var common Knob
	found := false
	for _, k := range Knobs() {
		if k.Name != flag {
			continue
		}
		if len(k.Commands) == 0 {
			common, found = k, true
			continue
		}
		for _, c := range k.Commands {
			if c == command {
				return k, true
			}
		}
	}
	return common, found
}
