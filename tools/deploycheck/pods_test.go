package deploycheck

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// pod is a workload's, as its checks see it.
type pod struct {
	*cluster
	*workload
	bin    string
	routes []string
	dir    string // scratch
}

// check of everything in it.
func (p *pod) check(f *faults) {
	spec := &p.pod.Spec
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 {
		f.add(p.name, "%d containers and %d before them: no check knows more than one", len(spec.Containers), len(spec.InitContainers))
		return
	}
	c := &spec.Containers[0]
	checkPinned(f, p.name, c.Image)
	if len(c.Command) > 0 && !slices.Equal(c.Command, []string{"/strandline"}) {
		f.add(p.name, "command %v is not in the image", c.Command)
	}
	files := p.mounted(f, c)
	for _, ordinal := range p.ordinals() {
		line := p.commandLine(f, c, files, ordinal)
		k, err := inForce(p.bin, line)
		if err != nil {
			f.add(p.name, "%v", err)
			return
		}
		if line.args[0] == "writer" {
			p.checkWriter(f, k, ordinal)
		}
		if ordinal > 0 {
			continue
		}
		checkVariables(f, p.name, line, fmt.Sprint(c.Args, c.Env))
		p.checkPorts(f, c, k)
		p.checkEncrypted(f, k)
		p.checkFiles(f, c, k, files)
		grace := time.Duration(*orDefault(spec.TerminationGracePeriodSeconds, 30)) * time.Second
		if least := k.duration("shutdown-timeout"); grace <= least {
			f.add(p.name, "is killed after %v, and its way out may take %v", grace, least)
		}
	}
	for _, e := range []struct {
		value string
		known []string
	}{
		{p.policy, []string{"", "OrderedReady", "Parallel"}},
		{string(spec.RestartPolicy), []string{"", "Always"}},
		{string(spec.DNSPolicy), []string{"", "ClusterFirst"}},
		{string(c.ImagePullPolicy), []string{"", "IfNotPresent", "Always"}},
	} {
		if !slices.Contains(e.known, e.value) {
			f.add(p.name, "the API knows no %s", e.value)
		}
	}
}

// ordinals of the pods that are looked at: only in a StatefulSet do they differ.
func (p *pod) ordinals() []int32 {
	if p.kind == "StatefulSet" && p.replicas > 1 {
		return []int32{0, p.replicas - 1}
	}
	return []int32{0}
}

func orDefault[T any](v *T, otherwise T) *T {
	if v == nil {
		return &otherwise
	}
	return v
}

// checkPinned: an image has a version.
func checkPinned(f *faults, where, image string) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		f.add(where, "image %q: %v", image, err)
		return
	}
	tagged, has := named.(reference.Tagged)
	if _, digest := named.(reference.Digested); !digest && (!has || tagged.Tag() == "latest") {
		f.add(where, "image %s is not pinned", image)
	}
}

// file is what stands at a path of a container.
type file struct {
	text    string // of a config map's
	refresh bool   // follows a change while the process runs
}

// mounted are the files of a container, by path, of volumes whose keys are known.
func (p *pod) mounted(f *faults, c *corev1.Container) map[string]file {
	out, used := map[string]file{}, map[string]bool{}
	for _, m := range c.VolumeMounts {
		used[m.Name] = true
		if !path.IsAbs(m.MountPath) {
			f.add(p.name, "mount %s at %s", m.Name, m.MountPath)
		}
		keys, is := p.keys(f, m.Name)
		if !is {
			f.add(p.name, "there is no volume %s to mount", m.Name)
		}
		if _, has := keys[m.SubPath]; m.SubPath != "" && !has {
			f.add(p.name, "%s has no key %s", m.Name, m.SubPath)
		}
		for key, text := range keys {
			switch m.SubPath {
			case key:
				out[m.MountPath] = file{text, false}
			case "":
				out[path.Join(m.MountPath, key)] = file{text, true}
			}
		}
	}
	for _, v := range p.pod.Spec.Volumes {
		if !used[v.Name] {
			f.add(p.name, "volume %s is mounted nowhere", v.Name)
		}
	}
	return out
}

// keys are the files of a volume, if it is there.
func (p *pod) keys(f *faults, volume string) (map[string]string, bool) {
	for _, claim := range p.claims {
		if claim.Name == volume {
			return nil, true
		}
	}
	for _, v := range p.pod.Spec.Volumes {
		switch {
		case v.Name != volume:
			continue
		case v.ConfigMap != nil:
			config := p.configs[v.ConfigMap.Name]
			if config == nil {
				f.add(p.name, "there is no config map %s", v.ConfigMap.Name)
				return nil, true
			}
			return config.Data, true
		case v.Secret != nil:
			made, is := p.secrets[v.Secret.SecretName]
			if !is {
				f.add(p.name, "the README makes no secret %s", v.Secret.SecretName)
			}
			out := map[string]string{}
			for _, key := range made {
				out[key] = ""
			}
			return out, true
		default:
			return nil, v.EmptyDir != nil
		}
	}
	return nil, false
}

var expansion = regexp.MustCompile(`\$\(([A-Za-z0-9_]+)\)`)

// commandLine is how the kubelet starts the container of the pod with this ordinal, but
// that the settings file is where it can be read here.
func (p *pod) commandLine(f *faults, c *corev1.Container, files map[string]file, ordinal int32) commandLine {
	line := commandLine{env: p.environ(f, c, ordinal)}
	for _, arg := range c.Args {
		arg = expansion.ReplaceAllStringFunc(arg, func(m string) string {
			value, is := line.env[m[2:len(m)-1]]
			if !is {
				f.add(p.name, "%s: nothing gives %s", arg, m)
			}
			return value
		})
		if at, is := strings.CutPrefix(arg, "--config="); is {
			text, there := files[at]
			if !there {
				f.add(p.name, "%s is mounted nowhere", at)
			}
			here := filepath.Join(p.dir, "strandline.yaml")
			if err := os.WriteFile(here, []byte(text.text), 0o600); err != nil {
				f.add(p.name, "%v", err)
			}
			arg = "--config=" + here
		}
		line.args = append(line.args, arg)
	}
	return line
}

// environ are a container's variables: those of services, of secrets, and its own.
func (p *pod) environ(f *faults, c *corev1.Container, ordinal int32) map[string]string {
	out := map[string]string{}
	if links := p.pod.Spec.EnableServiceLinks; links == nil || *links {
		for _, s := range p.services {
			if s.Spec.ClusterIP != corev1.ClusterIPNone && len(s.Spec.Ports) > 0 {
				name := strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
				out[name+"_SERVICE_HOST"] = "10.0.0.1"
				out[name+"_SERVICE_PORT"] = strconv.Itoa(int(s.Spec.Ports[0].Port))
				out[name+"_PORT"] = fmt.Sprintf("tcp://10.0.0.1:%d", s.Spec.Ports[0].Port)
			}
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef == nil || p.secrets[from.SecretRef.Name] == nil {
			f.add(p.name, "envFrom %v: the README makes no such secret", from.SecretRef)
			continue
		}
		for _, key := range p.secrets[from.SecretRef.Name] {
			out[from.Prefix+key] = "x"
		}
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			out[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			out[e.Name] = p.field(f, e.ValueFrom.FieldRef.FieldPath, ordinal)
		default:
			f.add(p.name, "%s: no check knows where it is from", e.Name)
		}
	}
	return out
}

// field of a pod's own object, as the downward API has them.
func (p *pod) field(f *faults, at string, ordinal int32) string {
	known := map[string]string{"metadata.name": fmt.Sprintf("%s-%d", p.name, ordinal), "metadata.namespace": p.namespace()}
	if p.kind == "StatefulSet" {
		known["metadata.labels['apps.kubernetes.io/pod-index']"] = strconv.Itoa(int(ordinal))
	}
	value, is := known[at]
	if !is {
		f.add(p.name, "a pod of a %s has no field %s", p.kind, at)
	}
	return value
}

// checkWriter: a writer has its shards, its volume and its name by its pod's ordinal.
func (p *pod) checkWriter(f *faults, k knobs, ordinal int32) {
	if p.kind != "StatefulSet" {
		f.add(p.name, "a writer's volume has to stand: make it a StatefulSet")
	}
	if got := k["shard-index"].value; got != strconv.Itoa(int(ordinal)) {
		f.add(p.name, "--shard-index is %s in pod %d", got, ordinal)
	}
	if got := k["shard-count"].value; got != strconv.Itoa(int(p.replicas)) {
		f.add(p.name, "--shard-count is %s for %d replicas", got, p.replicas)
	}
	s := p.cluster.service(p.workload.service)
	if s == nil || s.Spec.ClusterIP != corev1.ClusterIPNone || !s.Spec.PublishNotReadyAddresses {
		f.add(p.name, "%q names its pods: make it a headless service that names those that are not ready, too", p.workload.service)
		return
	}
	u, err := url.Parse(k["advertise"].value)
	want := fmt.Sprintf("%s-%d.%s.%s.svc", p.name, ordinal, s.Name, p.namespace())
	_, http, _ := strings.Cut(k["http"].value, ":")
	if err != nil || u.Hostname() != want || u.Port() != http {
		f.add(p.name, "--advertise is %s, and the pod %s:%s", k["advertise"].value, want, http)
	}
}
