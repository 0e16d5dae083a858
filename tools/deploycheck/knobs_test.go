package deploycheck

import (
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// commandLine is what a container starts the product with.
type commandLine struct {
	args []string
	env  map[string]string
}

// knobs is what is in force for it.
type knobs map[string]struct{ value, unit string }

// inForce asks the product itself, which refuses a flag, a variable or a key that it does
// not know, a value that is none, and what contradicts each other.
func inForce(bin string, c commandLine) (knobs, error) {
	if len(c.args) == 0 {
		return nil, errors.New("no command")
	}
	cmd := exec.Command(bin, append([]string{"config", c.args[0], "--json", "--"}, c.args[1:]...)...)
	cmd.Env = []string{}
	for name, value := range c.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return nil, errors.New(strings.TrimSpace(string(ended.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	var said struct {
		Commands []struct {
			Knobs []struct{ Name, Value, Unit string }
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, err
	}
	all := knobs{}
	for _, k := range said.Commands[0].Knobs {
		all[k.Name] = struct{ value, unit string }{k.Value, k.Unit}
	}
	return all, nil
}

func (k knobs) duration(name string) time.Duration {
	d, _ := time.ParseDuration(k[name].value) // the product prints what it took
	return d
}

// ports that are served, by knob; one that only this container could reach is a fault.
func (k knobs) ports(f *faults, where string) map[string]string {
	out := map[string]string{}
	for name, x := range k {
		if x.unit != "HOST:PORT" || x.value == "" {
			continue
		}
		host, port, err := net.SplitHostPort(x.value)
		if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
			f.add(where, "--%s=%s is not reached from outside of the container", name, x.value)
		}
		out[name] = port
	}
	return out
}

// ofUnit are the values that a knob gives of files or directories.
func (k knobs) ofUnit(unit string) map[string]string {
	out := map[string]string{}
	for name, x := range k {
		if x.unit == unit && x.value != "" {
			out[name] = path.Clean(x.value)
		}
	}
	return out
}

// foreignVariables are those of the drivers' own configuration that are used in deploy/.
func foreignVariables() []string {
	return []string{"PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "MINIO_ACCESS_KEY", "MINIO_SECRET_KEY"}
}

// checkVariables looks at what the product does not refuse: names that are not its own.
func checkVariables(f *faults, where string, c commandLine, used string) {
	for name := range c.env {
		own := strings.HasPrefix(name, "STRANDLINE_")
		if !own && !slices.Contains(foreignVariables(), name) && !strings.Contains(used, "$("+name+")") {
			f.add(where, "nothing reads the variable %s", name)
		}
	}
}
