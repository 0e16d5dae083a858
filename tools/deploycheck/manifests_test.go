package deploycheck

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	strict "sigs.k8s.io/yaml"
)

const (
	manifests     = "../../deploy/kubernetes"
	kustomization = "kustomization.yaml"
	readme        = "README.md"
)

// workload is a Deployment or a StatefulSet.
type workload struct {
	kind, name string
	replicas   int32
	selector   *metav1.LabelSelector
	pod        corev1.PodTemplateSpec
	policy     string // how its pods are managed
	service    string // which names its pods
	claims     []corev1.PersistentVolumeClaim
}

// cluster is what `kubectl apply -k` sends, as the API decodes it.
type cluster struct {
	namespaces, accounts map[string]bool
	lives                map[string]bool // namespaces that something is in
	workloads            []workload
	services             []*corev1.Service
	budgets              []*policyv1.PodDisruptionBudget
	configs              map[string]*corev1.ConfigMap
	secrets              map[string][]string // keys by secret, as the README makes them
	readme               string
}

func manifestFiles(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(manifests)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		out[e.Name()] = read(t, filepath.Join(manifests, e.Name()))
	}
	return out
}

// decoder refuses unknown and doubled fields, wrong types, and kinds that these groups lack.
func decoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), policyv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), err
}

// decode reads the manifests twice: as they are written, for what a rendering would swallow,
// and as kustomize renders them, which is what is sent.
func decode(files map[string]string) (*cluster, faults) {
	var f faults
	d, err := decoder()
	if err != nil {
		f.add("types", "%v", err)
		return nil, f
	}
	fs := filesys.MakeFsInMemory()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := fs.WriteFile("/"+name, []byte(files[name])); err != nil {
			f.add(name, "%v", err)
		}
		if strings.HasSuffix(name, ".yaml") && name != kustomization {
			decodeFile(&f, d, name, files[name])
		}
	}
	checkListed(&f, files)
	if len(f) > 0 {
		return nil, f
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/")
	if err != nil {
		f.add(kustomization, "%v", err)
		return nil, f
	}
	c := &cluster{namespaces: map[string]bool{}, accounts: map[string]bool{}, lives: map[string]bool{}, configs: map[string]*corev1.ConfigMap{}, readme: files[readme]}
	for _, r := range rendered.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			f.add(r.GetName(), "%v", err)
			continue
		}
		object, _, err := d.Decode(text, nil, nil)
		if err != nil {
			f.add(r.GetName(), "rendered: %v", err)
			continue
		}
		c.take(&f, object)
	}
	c.secrets = madeSecrets(&f, c)
	return c, f
}

// decodeFile decodes each document of a file.
func decodeFile(f *faults, d runtime.Decoder, name, text string) {
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.add(name, "%v", err)
			return
		}
		if _, _, err := d.Decode(document, nil, nil); err != nil {
			f.add(name, "%v", err)
		}
	}
}

// checkListed: what is not in the kustomization is not applied.
func checkListed(f *faults, files map[string]string) {
	var k kustomize.Kustomization
	if err := strict.UnmarshalStrict([]byte(files[kustomization]), &k); err != nil {
		f.add(kustomization, "%v", err)
		return
	}
	for name := range files {
		if strings.HasSuffix(name, ".yaml") && name != kustomization && !slices.Contains(k.Resources, name) {
			f.add(kustomization, "%s is not among the resources", name)
		}
	}
}

// take sorts an object in.
func (c *cluster) take(f *faults, object runtime.Object) {
	if named, is := object.(metav1.Object); is && named.GetNamespace() != "" {
		c.lives[named.GetNamespace()] = true
		for _, e := range validation.ValidateLabels(named.GetLabels(), field.NewPath("labels")) {
			f.add(named.GetName(), "%v", e)
		}
	}
	switch o := object.(type) {
	case *corev1.Namespace:
		c.namespaces[o.Name] = true
	case *corev1.ServiceAccount:
		c.accounts[o.Name] = true
	case *corev1.ConfigMap:
		c.configs[o.Name] = o
	case *corev1.Service:
		c.services = append(c.services, o)
	case *policyv1.PodDisruptionBudget:
		c.budgets = append(c.budgets, o)
	case *appsv1.Deployment:
		c.workloads = append(c.workloads, workload{
			kind: "Deployment", name: o.Name, replicas: count(o.Spec.Replicas), selector: o.Spec.Selector, pod: o.Spec.Template,
		})
	case *appsv1.StatefulSet:
		c.workloads = append(c.workloads, workload{
			kind: "StatefulSet", name: o.Name, replicas: count(o.Spec.Replicas), selector: o.Spec.Selector, pod: o.Spec.Template,
			policy: string(o.Spec.PodManagementPolicy), service: o.Spec.ServiceName, claims: o.Spec.VolumeClaimTemplates,
		})
	default:
		f.add(object.GetObjectKind().GroupVersionKind().Kind, "no check knows this kind; add what has to hold for it")
	}
}

func count(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// TestManifests: they are what the API takes, what they name is there, and what they start
// is what the product knows. Each mistake is one that was tried, to see it found.
func TestManifests(t *testing.T) {
	bin := product(t)
	routes := served(t)
	dir := t.TempDir()
	seen(t, manifestFiles(t), func(files map[string]string) faults {
		c, f := decode(files)
		if len(f) > 0 {
			return f
		}
		c.checkRelations(&f)
		for i := range c.workloads {
			p := &pod{cluster: c, workload: &c.workloads[i], bin: bin, routes: routes, dir: dir}
			p.check(&f)
		}
		return f
	}, manifestMistakes())
}
