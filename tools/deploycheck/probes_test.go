package deploycheck

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	strict "sigs.k8s.io/yaml"
)

// served are the paths that can be asked for with GET, of the product's own document.
func served(t *testing.T) (out []string) {
	t.Helper()
	var document struct{ Paths map[string]map[string]any }
	if err := strict.Unmarshal([]byte(read(t, "../../internal/httpapi/openapi.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	for p, verbs := range document.Paths {
		if verbs["get"] != nil {
			out = append(out, p)
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %v", out)
	}
	return out
}

// checkPorts: what is declared is served, what is served is declared, and probes reach it.
func (p *pod) checkPorts(f *faults, c *corev1.Container, k knobs) {
	served := slices.Collect(maps.Values(k.ports(f, p.name)))
	declared := map[string]string{}
	for _, port := range c.Ports {
		number := strconv.Itoa(int(port.ContainerPort))
		for _, e := range validation.IsValidPortName(port.Name) {
			f.add(p.name, "port %q: %s", port.Name, e)
		}
		if !slices.Contains(served, number) {
			f.add(p.name, "nothing is served on its port %s (%s)", port.Name, number)
		}
		declared[port.Name] = number
	}
	for _, number := range served {
		if !slices.Contains(slices.Collect(maps.Values(declared)), number) {
			f.add(p.name, "serves %s, and has no such port", number)
		}
	}
	p.checkProbe(f, "readiness", c.ReadinessProbe, k)
	p.checkProbe(f, "liveness", c.LivenessProbe, k)
	if c.StartupProbe != nil {
		p.checkProbe(f, "startup", c.StartupProbe, k)
	}
	// A pod that is not ready because its bucket is away must not be killed for it.
	if l := c.LivenessProbe; l != nil && l.HTTPGet != nil && l.HTTPGet.Path != "/healthz" {
		f.add(p.name, "liveness is asked of %s", l.HTTPGet.Path)
	}
	if r := c.ReadinessProbe; r != nil && r.HTTPGet != nil && r.HTTPGet.Path != "/readyz" {
		f.add(p.name, "readiness is asked of %s", r.HTTPGet.Path)
	}
}

// checkProbe: it asks a path that is there, at the port and with the scheme that serve it.
func (p *pod) checkProbe(f *faults, kind string, probe *corev1.Probe, k knobs) {
	where := p.name + ", " + kind
	if probe == nil || probe.HTTPGet == nil {
		f.add(where, "asks nothing over HTTP")
		return
	}
	get := probe.HTTPGet
	if !slices.Contains(p.routes, get.Path) {
		f.add(where, "no process serves %s", get.Path)
	}
	scheme := corev1.URISchemeHTTP
	if k["tls-cert"].value != "" {
		scheme = corev1.URISchemeHTTPS
	}
	if *orDefault(&get.Scheme, corev1.URISchemeHTTP) != scheme {
		f.add(where, "asks over %s what is served over %s", get.Scheme, scheme)
	}
	_, http, _ := strings.Cut(k["http"].value, ":")
	if n := containerPort(p.workload, get.Port); strconv.Itoa(int(n)) != http {
		f.add(where, "asks port %s, which is %d, and not %s", get.Port.String(), n, http)
	}
}

// checkEncrypted: nothing goes over the network plainly, or for anybody.
func (p *pod) checkEncrypted(f *faults, k knobs) {
	for _, knob := range []string{"tls-cert", "tls-key", "token-file"} {
		if k[knob].value == "" {
			f.add(p.name, "has no --%s", knob)
		}
	}
	if k["allow-remote"].value == "true" || !strings.Contains(k["catalog"].value, "sslmode=verify-full") || strings.Contains(k["store"].value, "tls=false") {
		f.add(p.name, "asks its catalog or store, or is asked, without TLS: %s %s", k["catalog"].value, k["store"].value)
	}
}
