// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// published is a CustomResourceDefinition as its project publishes it, inside of
// its Go module. sum is what go.sum would say of the module.
type published struct{ module, version, sum, file string }

var (
	argoCDKinds = published{"github.com/argoproj/argo-cd/v3", "v3.5.1", "h1:jtwPLEFX9mNj3jSq88ugFcScGnOZVs2DWaXFuZxrRT8=", "manifests/crds/application-crd.yaml"}
	helmKinds   = published{"github.com/fluxcd/helm-controller", "v1.6.3", "h1:MSiDP/s8xRSkO3g11vBiDStxfmJ5ZVdwDEpW7BSE/UA=",
		"config/crd/bases/helm.toolkit.fluxcd.io_helmreleases.yaml"}
	kustomizeKinds = published{"github.com/fluxcd/kustomize-controller", "v1.9.4", "h1:VBnBMhnemqnE5Zca2AoG2gC4472MoiTmk9rdqvLoMcY=",
		"config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"}
)

// path downloads the module, or finds it in the module cache, and gives the file.
func (p published) path(t *testing.T) string {
	t.Helper()
	cmd := child.Bind(exec.CommandContext(t.Context(), "go", "mod", "download", "-json", p.module+"@"+p.version))
	cmd.Dir = t.TempDir() // no go.mod is concerned
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var module struct{ Dir, Sum, Error string }
	if decodeErr := json.Unmarshal(out, &module); err != nil || decodeErr != nil {
		t.Fatalf("downloading %s: %v, %v, %s", p.module, err, decodeErr, module.Error)
	}
	if module.Sum != p.sum {
		t.Fatalf("%s@%s has the sum %s, want %s", p.module, p.version, module.Sum, p.sum)
	}
	return filepath.Join(module.Dir, p.file)
}

// farm is an API server with what the chart installs, without pods, and the
// kinds of GitOps tools.
type farm struct {
	env   *envtest.Environment
	kube  client.Client
	admin string // a kubeconfig
}

func newFarm(t *testing.T, kinds ...published) *farm {
	t.Helper()
	var paths []string
	for _, k := range kinds {
		paths = append(paths, k.path(t))
	}
	env, err := apiserver.Start(func(env *envtest.Environment) { env.CRDDirectoryPaths, env.ErrorIfCRDPathMissing = paths, true })
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	f := &farm{env: env, admin: filepath.Join(t.TempDir(), "admin.kubeconfig")}
	f.kube, err = client.New(env.Config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	must(t, apiserver.Enrol(env, f.admin, "admin", "system:masters"))
	helm, err := rendered.Find(t.Context())
	must(t, err)
	objects, err := apiserver.Render(t.Context(), helm)
	must(t, err)
	must(t, apiserver.Install(t.Context(), f.kube, objects, "Secret", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"))
	for _, name := range []string{"argocd", "flux-system"} {
		must(t, f.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return f
}

// ignored are the findings of the check, as "Severity Object", and in full.
func (f *farm) ignored(t *testing.T, config string) ([]string, []doctor.Finding) {
	t.Helper()
	got := plumbline(t.Context(), config, "", "", "doctor", "-o", "json", "--probe=false")
	var report doctor.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		t.Fatalf("%v\n%+v", err, got)
	}
	var short []string
	var full []doctor.Finding
	for _, finding := range report.Findings {
		if finding.ID == "gitops.ignore" {
			short, full = append(short, strings.TrimSpace(string(finding.Severity)+" "+finding.Object)), append(full, finding)
		}
	}
	slices.Sort(short)
	return short, full
}

// put creates an object, or writes over it.
func (f *farm) put(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	there := object.DeepCopy()
	err := f.kube.Get(t.Context(), client.ObjectKeyFromObject(object), there)
	if apierrors.IsNotFound(err) {
		must(t, f.kube.Create(t.Context(), object.DeepCopy()))
		return
	}
	must(t, err)
	object = object.DeepCopy()
	object.SetResourceVersion(there.GetResourceVersion())
	must(t, f.kube.Update(t.Context(), object))
}

// objectOf is an object from the YAML of all but its spec, and of its spec.
func objectOf(t *testing.T, rest, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.UnmarshalStrict([]byte(rest), &object.Object))
	var parsed map[string]any
	must(t, yaml.UnmarshalStrict([]byte(spec), &parsed))
	object.Object["spec"] = merged(object.Object["spec"], parsed)
	return object
}

// merged adds b to a as the text of a fix asks: maps are merged and lists
// extended.
func merged(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		out := map[string]any{}
		if a, ok := a.(map[string]any); ok {
			out = a
		}
		for key, value := range b {
			out[key] = merged(out[key], value)
		}
		return out
	case []any:
		if a, ok := a.([]any); ok {
			return append(slices.Clone(a), b...)
		}
	}
	return b
}

// pasted is the YAML of a fix.
func pasted(t *testing.T, findings []doctor.Finding) string {
	t.Helper()
	i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Warning })
	if i < 0 {
		t.Fatalf("nothing is to be mended: %+v", findings)
	}
	_, text, found := strings.Cut(findings[i].Fix, ":\n")
	if !found {
		t.Fatalf("the fix holds nothing to paste: %q", findings[i].Fix)
	}
	return text
}

// markConfigurations puts labels and annotations onto both webhook
// configurations, as GitOps tools do, and takes all others of theirs away.
func (f *farm) markConfigurations(ctx context.Context, t *testing.T, labels, annotations map[string]string) {
	t.Helper()
	for _, object := range []client.Object{&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}} {
		must(t, f.kube.Get(ctx, client.ObjectKey{Name: "plumbline"}, object))
		kept := object.GetLabels()
		for key := range kept {
			if strings.Contains(key, "toolkit.fluxcd.io/") {
				delete(kept, key)
			}
		}
		maps.Copy(kept, labels)
		object.SetLabels(kept)
		object.SetAnnotations(annotations)
		must(t, f.kube.Update(ctx, object))
	}
}

// role lets its holders do one thing everywhere.
func (f *farm) role(t *testing.T, name string, groups, resources []string, verb string) {
	t.Helper()
	must(t, f.kube.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: groups, Resources: resources, Verbs: []string{verb}}},
	}))
}

func inFull(findings []doctor.Finding) string { return fmt.Sprintf("%+v", findings) }
