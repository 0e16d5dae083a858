package deploycheck

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// checkFiles: what a knob names is mounted, and what is written to may be.
func (p *pod) checkFiles(f *faults, c *corev1.Container, k knobs, files map[string]file) {
	for knob, at := range k.ofUnit("file") {
		got, is := files[at]
		if !is {
			f.add(p.name, "--%s: %s is mounted nowhere", knob, at)
		} else if !got.refresh {
			f.add(p.name, "--%s: %s does not follow its secret: mount the directory, no subPath", knob, at)
		}
	}
	for knob, at := range k.ofUnit("directory") {
		p.checkWritable(f, c, "--"+knob, at)
		if knob == "dir" && !p.claimed(c, at) {
			f.add(p.name, "--dir %s is on no volume claim: it would be lost with the pod", at)
		}
	}
	p.checkWritable(f, c, "spools and temporary files", "/tmp")
	p.checkUser(f, c)
	for _, claim := range p.claims {
		if _, has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; !has || !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) {
			f.add(p.name, "claim %s: %v of %v", claim.Name, claim.Spec.AccessModes, claim.Spec.Resources.Requests)
		}
	}
}

// under says that a path is a directory or below it.
func under(at, dir string) bool { return at == dir || strings.HasPrefix(at, path.Clean(dir)+"/") }

// checkWritable: with a root file system that is read-only, it is on a volume that is not.
func (p *pod) checkWritable(f *faults, c *corev1.Container, what, at string) {
	for _, m := range c.VolumeMounts {
		if under(at, m.MountPath) && !m.ReadOnly {
			return
		}
	}
	if s := c.SecurityContext; s != nil && *orDefault(s.ReadOnlyRootFilesystem, false) {
		f.add(p.name, "%s: %s is read-only", what, at)
	}
}

// claimed says that a path is on a volume that outlives the pod.
func (p *pod) claimed(c *corev1.Container, at string) bool {
	for _, m := range c.VolumeMounts {
		for _, claim := range p.claims {
			if m.Name == claim.Name && under(at, m.MountPath) {
				return true
			}
		}
	}
	return false
}

// nobody is the user of the image.
const nobody = 65534

// checkUser: the image's, who gets its volumes by its group; and limits that hold a request.
func (p *pod) checkUser(f *faults, c *corev1.Container) {
	s := orDefault(p.pod.Spec.SecurityContext, corev1.PodSecurityContext{})
	if !*orDefault(s.RunAsNonRoot, false) || *orDefault(s.RunAsUser, 0) != nobody || *orDefault(s.FSGroup, 0) != nobody {
		f.add(p.name, "does not run as %d, with its volumes' group", nobody)
	}
	if sec := s.SeccompProfile; sec == nil || sec.Type != corev1.SeccompProfileTypeRuntimeDefault {
		f.add(p.name, "has no seccomp profile RuntimeDefault")
	}
	for name, limit := range c.Resources.Limits {
		if request, has := c.Resources.Requests[name]; has && request.Cmp(limit) > 0 {
			f.add(p.name, "asks for more %s (%s) than its limit (%s)", name, request.String(), limit.String())
		}
	}
}
