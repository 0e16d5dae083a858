package deploycheck

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// namespace that all of it lives in.
func (c *cluster) namespace() string {
	for name := range c.lives {
		return name
	}
	return ""
}

// selected are the workloads whose pods a selector takes.
func (c *cluster) selected(s labels.Selector) (out []*workload) {
	for i := range c.workloads {
		if s.Matches(labels.Set(c.workloads[i].pod.Labels)) {
			out = append(out, &c.workloads[i])
		}
	}
	return out
}

// selector of the form that workloads and budgets have; one of nothing takes everything.
func selector(f *faults, where string, s *metav1.LabelSelector) labels.Selector {
	bad := validation.ValidateLabelSelector(s, validation.LabelSelectorValidationOptions{}, field.NewPath("selector"))
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || len(bad) > 0 || out.Empty() {
		f.add(where, "selector: %v %v", bad, err)
		return labels.Nothing()
	}
	return out
}

// checkRelations: what names another is right about it.
func (c *cluster) checkRelations(f *faults) {
	if len(c.lives) != 1 || !c.namespaces[c.namespace()] {
		f.add(kustomization, "objects live in %v, namespaces are %v", c.lives, c.namespaces)
	}
	for i := range c.workloads {
		w := &c.workloads[i]
		for _, e := range validation.ValidateLabels(w.pod.Labels, field.NewPath("labels")) {
			f.add(w.name, "%v", e)
		}
		// Two controllers that select the same pods fight over them.
		if got := c.selected(selector(f, w.name, w.selector)); len(got) != 1 || got[0] != w {
			f.add(w.name, "its selector takes the pods of %v", names(got))
		}
		if !c.accounts[w.pod.Spec.ServiceAccountName] {
			f.add(w.name, "there is no service account %q", w.pod.Spec.ServiceAccountName)
		}
		if a := w.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			for _, term := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				if got := c.selected(selector(f, w.name, term.PodAffinityTerm.LabelSelector)); !slices.Contains(got, w) {
					f.add(w.name, "keeps away from the pods of %v, not from its own", names(got))
				}
			}
		}
	}
	c.checkBudgets(f)
	for _, s := range c.services {
		c.checkService(f, s)
	}
	c.checkSecrets(f)
	c.checkCertificate(f)
}

func names(all []*workload) (out []string) {
	for _, w := range all {
		out = append(out, w.name)
	}
	return out
}

// checkBudgets: each workload has one, which lets a drain go on and leaves somebody.
func (c *cluster) checkBudgets(f *faults) {
	budgeted := map[string]int{}
	for _, b := range c.budgets {
		got := c.selected(selector(f, "budget "+b.Name, b.Spec.Selector))
		if len(got) != 1 {
			f.add("budget "+b.Name, "takes the pods of %v", names(got))
			continue
		}
		w := got[0]
		budgeted[w.name]++
		may := w.replicas // pods that may be away
		switch {
		case b.Spec.MaxUnavailable != nil && b.Spec.MinAvailable == nil:
			n, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(w.replicas), true)
			may = int32(n)
		case b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable == nil:
			n, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(w.replicas), true)
			may = w.replicas - int32(n)
		}
		if may < 1 || may >= w.replicas {
			f.add("budget "+b.Name, "%d of %d pods may be away", may, w.replicas)
		}
	}
	for _, w := range c.workloads {
		if budgeted[w.name] != 1 {
			f.add(w.name, "has %d disruption budgets", budgeted[w.name])
		}
	}
}

// checkService: somebody is behind it, at the ports that it names.
func (c *cluster) checkService(f *faults, s *corev1.Service) {
	where := "service " + s.Name
	got := c.selected(labels.SelectorFromValidatedSet(s.Spec.Selector))
	if len(s.Spec.Selector) == 0 || len(got) != 1 {
		f.add(where, "takes the pods of %v", names(got))
		return
	}
	for _, p := range s.Spec.Ports {
		target := containerPort(got[0], p.TargetPort)
		if target == 0 {
			f.add(where, "%s has no port %s", got[0].name, p.TargetPort.String())
		}
		if s.Spec.ClusterIP == corev1.ClusterIPNone && target != p.Port {
			f.add(where, "port %d: names of pods lead to %d", p.Port, target)
		}
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			f.add(where, "port %d is %s", p.Port, p.Protocol)
		}
	}
}

// containerPort is the number of a port of a workload's pods; 0: they have none such.
func containerPort(w *workload, p intstr.IntOrString) int32 {
	for i := range w.pod.Spec.Containers {
		for _, have := range w.pod.Spec.Containers[i].Ports {
			if p.Type == intstr.String && have.Name == p.StrVal || p.Type == intstr.Int && have.ContainerPort == p.IntVal {
				return have.ContainerPort
			}
		}
	}
	return 0
}

// service of a name, if there is one.
func (c *cluster) service(name string) *corev1.Service {
	for _, s := range c.services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// checkCertificate: the README says for which names it has to hold.
func (c *cluster) checkCertificate(f *faults) {
	for _, s := range c.services {
		name := s.Name
		if s.Spec.ClusterIP == corev1.ClusterIPNone {
			name = "*." + s.Name + "." + c.namespace() + ".svc"
		}
		if !strings.Contains(c.readme, "`"+name+"`") {
			f.add(readme, "the certificate does not hold for %s", name)
		}
	}
}

var (
	continued = regexp.MustCompile(`\\\n\s*`)
	secret    = regexp.MustCompile(`(?m)^\s*kubectl -n (\S+) create secret generic (\S+) (.*)$`)
)

// madeSecrets are those that the README's commands make, with their keys.
func madeSecrets(f *faults, c *cluster) map[string][]string {
	out := map[string][]string{}
	for _, m := range secret.FindAllStringSubmatch(continued.ReplaceAllString(c.readme, ""), -1) {
		if !c.namespaces[m[1]] {
			f.add(readme, "secret %s is made in %s", m[2], m[1])
		}
		out[m[2]] = nil
		for _, word := range strings.Fields(m[3]) {
			switch from, rest, _ := strings.Cut(word, "="); from {
			case "--from-file":
				key, _, _ := strings.Cut(rest, "=")
				out[m[2]] = append(out[m[2]], path.Base(key))
			case "--from-literal":
				key, _, _ := strings.Cut(rest, "=")
				out[m[2]] = append(out[m[2]], key)
			default:
				f.add(readme, "secret %s: what is %s?", m[2], word)
			}
		}
	}
	return out
}

// checkSecrets: the README makes none in vain; that it makes those which are used is said
// where they are.
func (c *cluster) checkSecrets(f *faults) {
	used := map[string]bool{}
	for _, w := range c.workloads {
		for _, v := range w.pod.Spec.Volumes {
			if v.Secret != nil {
				used[v.Secret.SecretName] = true
			}
		}
		for i := range w.pod.Spec.Containers {
			for _, e := range w.pod.Spec.Containers[i].EnvFrom {
				if e.SecretRef != nil {
					used[e.SecretRef.Name] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.secrets)) {
		if !used[name] {
			f.add(readme, "no pod uses the secret %s", name)
		}
	}
}
