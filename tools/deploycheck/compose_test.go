package deploycheck

import (
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "docker-compose.yml"

// compose is a compose file as `docker compose` loads it: held against its schema,
// interpolated with no variable set, merged, and its references looked up.
func compose(text string) (*types.Project, faults) {
	var f faults
	root, err := filepath.Abs("../..")
	if err != nil {
		f.add(composeFile, "%v", err)
		return nil, f
	}
	details := func() types.ConfigDetails {
		return types.ConfigDetails{
			WorkingDir: root, Environment: types.Mapping{},
			ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, composeFile), Content: []byte(text)}},
		}
	}
	raw, err := loader.LoadModelWithContext(context.Background(), details(), func(o *loader.Options) { o.SkipInterpolation = true })
	if err != nil {
		f.add(composeFile, "%v", err)
		return nil, f
	}
	for name, v := range template.ExtractVariables(raw, template.DefaultPattern) {
		if name != "" && v.DefaultValue == "" && v.PresenceValue == "" { // one without a name is refused below
			f.add(composeFile, "$%s is empty for who does not set it", name)
		}
	}
	if len(f) > 0 {
		return nil, f
	}
	project, err := loader.LoadWithContext(context.Background(), details())
	if err != nil {
		f.add(composeFile, "%v", err)
	}
	return project, f
}

// variables that a service sets.
func variables(s *types.ServiceConfig) map[string]string {
	out := map[string]string{}
	for name, value := range s.Environment {
		out[name] = *orDefault(value, "")
	}
	return out
}

// checkCompose of services whoever's they are.
func checkCompose(f *faults, p *types.Project) {
	mounted := map[string]bool{}
	for name, s := range p.Services {
		if s.Build == nil {
			checkPinned(f, name, s.Image)
		}
		if s.HealthCheck != nil && (s.HealthCheck.Disable || len(s.HealthCheck.Test) < 2) {
			f.add(name, "its health check asks nothing")
		}
		for other, on := range s.DependsOn {
			checkWait(f, name, other, on, p.Services[other])
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				f.add(name, "port %s is published beyond this machine", port.Published)
			}
		}
		for _, v := range s.Volumes {
			mounted[v.Source] = true
		}
	}
	for name := range p.Volumes {
		if !mounted[name] {
			f.add(composeFile, "volume %s is mounted nowhere", name)
		}
	}
}

// checkWait: what is waited for comes, if all is well.
func checkWait(f *faults, name, other string, on types.ServiceDependency, s types.ServiceConfig) {
	switch on.Condition {
	case types.ServiceConditionHealthy:
		if s.HealthCheck == nil {
			f.add(name, "waits until %s is healthy, which has no health check", other)
		}
	case types.ServiceConditionCompletedSuccessfully:
		if s.Restart != "" && s.Restart != types.RestartPolicyNo && s.Restart != types.RestartPolicyOnFailure {
			f.add(name, "waits until %s ends, which is started again", other)
		}
	default:
		f.add(name, "only waits until %s was started", other)
	}
}

// member is a service that runs the product.
type member struct {
	bin     string
	project *types.Project
	name    string
	service types.ServiceConfig
	in      knobs
}

// check what it starts, and that what is said of it elsewhere is so.
func (m *member) check(f *faults) {
	s := &m.service
	line := commandLine{s.Command, variables(s)}
	var err error
	if m.in, err = inForce(m.bin, line); err != nil {
		f.add(m.name, "%v", err)
		return
	}
	checkVariables(f, m.name, line, "")
	if len(s.Entrypoint) > 0 {
		f.add(m.name, "entrypoint %v instead of the image's", s.Entrypoint)
	}
	served := slices.Collect(maps.Values(m.in.ports(f, m.name)))
	for _, p := range s.Ports {
		if !slices.Contains(served, strconv.Itoa(int(p.Target))) {
			f.add(m.name, "publishes %d, and serves %v", p.Target, served)
		}
	}
	grace, least := time.Duration(*orDefault(s.StopGracePeriod, types.Duration(10*time.Second))), m.in.duration("shutdown-timeout")
	if grace <= least {
		f.add(m.name, "is killed after %v, and its way out may take %v", grace, least)
	}
	m.checkHealth(f, line.env)
	for _, store := range strings.Fields(m.in["store"].value) {
		_, at, _ := strings.Cut(store, "=")
		m.checkReached(f, at)
	}
	m.checkReached(f, m.in["catalog"].value)
	if line.args[0] == "writer" {
		m.checkWriter(f)
	}
}

// checkHealth: the check is the product's own `ready`, asks this process, and has the time.
func (m *member) checkHealth(f *faults, env map[string]string) {
	h := m.service.HealthCheck
	if h == nil || len(h.Test) < 3 || h.Test[0] != "CMD" || h.Test[1] != "/strandline" || h.Test[2] != "ready" {
		f.add(m.name, "its health is not asked with `strandline ready`")
		return
	}
	k, err := inForce(m.bin, commandLine{h.Test[2:], env})
	if err != nil {
		f.add(m.name, "health check: %v", err)
		return
	}
	u, err := url.Parse(k["server"].value)
	if _, port, _ := strings.Cut(m.in["http"].value, ":"); err != nil || u.Port() != port || (u.Scheme == "https") != (m.in["tls-cert"].value != "") {
		f.add(m.name, "health is asked of %s, and served on %s", k["server"].value, m.in["http"].value)
	}
	if has, needs := time.Duration(*orDefault(h.Timeout, types.Duration(30*time.Second))), k.duration("timeout"); has <= needs {
		f.add(m.name, "its health check is ended after %v, and may take %v", has, needs)
	}
}

// checkReached: a URL names a service, and waits for it.
func (m *member) checkReached(f *faults, at string) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return
	}
	if _, is := m.project.Services[u.Hostname()]; !is {
		f.add(m.name, "%s is no service", u.Hostname())
		return
	}
	if !m.waitsFor(m.name, u.Hostname()) {
		f.add(m.name, "does not wait for %s", u.Hostname())
	}
}

// waitsFor says so also of what those wait for that it waits for.
func (m *member) waitsFor(name, other string) bool {
	for on := range m.project.Services[name].DependsOn {
		if on == other || m.waitsFor(on, other) {
			return true
		}
	}
	return false
}

// checkWriter: its directory stands, and others find it by its name.
func (m *member) checkWriter(f *faults) {
	stands := false
	for _, v := range m.service.Volumes {
		stands = stands || v.Type == types.VolumeTypeVolume && v.Source != "" && under(m.in["dir"].value, v.Target)
	}
	if !stands {
		f.add(m.name, "--dir %s is on no volume: it would be lost with the container", m.in["dir"].value)
	}
	u, err := url.Parse(m.in["advertise"].value)
	if _, port, _ := strings.Cut(m.in["http"].value, ":"); err != nil || u.Hostname() != m.name || u.Port() != port {
		f.add(m.name, "--advertise is %s", m.in["advertise"].value)
	}
}

// checkWriters: each has shards and a volume of its own, and no shard is left out.
func checkWriters(f *faults, all []*member) {
	volumes, indexes := map[string]string{}, map[string]string{}
	writers := 0
	for _, m := range all {
		if m.service.Command[0] != "writer" {
			continue
		}
		writers++
		if other, is := indexes[m.in["shard-index"].value]; is {
			f.add(m.name, "has the --shard-index of %s", other)
		}
		indexes[m.in["shard-index"].value] = m.name
		for _, v := range m.service.Volumes {
			if other, is := volumes[v.Source]; is {
				f.add(m.name, "has the volume of %s", other)
			}
			volumes[v.Source] = m.name
		}
	}
	for _, m := range all {
		if got := m.in["shard-count"].value; m.service.Command[0] == "writer" && got != strconv.Itoa(writers) {
			f.add(m.name, "--shard-count is %s for %d writers", got, writers)
		}
	}
}

// checkSecrets: who asks has what the server was given.
func checkSecrets(f *faults, p *types.Project, all []*member) {
	for _, m := range all {
		mine := variables(&m.service)
		for own, of := range map[string][2]string{
			"PGPASSWORD": {"postgres", "POSTGRES_PASSWORD"}, "MINIO_ACCESS_KEY": {"minio", "MINIO_ROOT_USER"}, "MINIO_SECRET_KEY": {"minio", "MINIO_ROOT_PASSWORD"},
		} {
			s := p.Services[of[0]]
			if want := variables(&s)[of[1]]; want == "" || mine[own] != want {
				f.add(m.name, "%s is not %s's %s", own, of[0], of[1])
			}
		}
	}
}

// TestCompose: the compose file is what Compose takes, what it names is there, and what it
// starts is what the product knows.
func TestCompose(t *testing.T) {
	bin := product(t)
	files := map[string]string{composeFile: read(t, filepath.Join("../..", composeFile))}
	seen(t, files, func(files map[string]string) faults {
		p, f := compose(files[composeFile])
		if len(f) > 0 {
			return f
		}
		checkCompose(&f, p)
		var all []*member
		for _, name := range slices.Sorted(maps.Keys(p.Services)) {
			if s := p.Services[name]; s.Build != nil {
				m := &member{bin: bin, project: p, name: name, service: s}
				m.check(&f)
				all = append(all, m)
			}
		}
		if len(f) > 0 {
			return f
		}
		checkWriters(&f, all)
		checkSecrets(&f, p, all)
		if len(all) < 4 {
			f.add(composeFile, "%d services run the product", len(all))
		}
		return f
	}, composeMistakes())
}
