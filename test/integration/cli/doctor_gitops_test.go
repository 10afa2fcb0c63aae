// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const (
	theMutating   = " MutatingWebhookConfiguration/plumbline"
	theValidating = " ValidatingWebhookConfiguration/plumbline"
	theSecret     = " Secret/" + rendered.Namespace + "/plumbline-webhook-tls"
	theLeaseA     = " Lease/" + rendered.Namespace + "/plumbline-assessor"
	theLeaseW     = " Lease/" + rendered.Namespace + "/plumbline-webhook"
)

// anApplication installs the chart into the cluster that it is in.
const anApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: plumbline}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: plumbline-system}
  source: {repoURL: https://example.com/plumbline.git, path: charts/plumbline, targetRevision: main}
status:
  resources: [{group: admissionregistration.k8s.io, version: v1, kind: MutatingWebhookConfiguration, name: plumbline, status: Synced}]
`

const respects = "\nsyncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}\n"

// TestDoctorGitOps_ArgoCD gives Applications one set of rules after another, with
// Argo CD's own kinds on a real API server.
func TestDoctorGitOps_ArgoCD(t *testing.T) {
	rotation.Share(t, 3)
	f := newFarm(t, argoCDKinds)
	expect := func(t *testing.T, config string, says string, want ...string) {
		t.Helper()
		got, full := f.ignored(t, config)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, inFull(full))
		}
		if !strings.Contains(inFull(full), says) {
			t.Errorf("nothing says %q: %s", says, inFull(full))
		}
	}
	expect(t, f.admin, "no Application of it installs Plumbline", "Info")

	const bundles = "{group: admissionregistration.k8s.io, kind: '*', jqPathExpressions: ['.webhooks[]?.clientConfig.caBundle']}"
	const settings = "resource.customizations.ignoreDifferences."
	all := []string{"Warning" + theMutating, "Warning" + theSecret, "Warning" + theValidating}
	cases := map[string]struct {
		spec     string
		settings map[string]string
		says     string
		want     []string
	}{
		"no rules":                    {"{}", nil, "does not ignore /data", append([]string{"Warning Application/argocd/plumbline"}, all...)},
		"some rules":                  {"ignoreDifferences: [" + bundles + "]" + respects, nil, "does not ignore /data", []string{"Warning" + theSecret}},
		"all rules":                   {"ignoreDifferences: [" + bundles + ", {kind: Secret, name: plumbline-webhook-tls, jsonPointers: [/data]}]" + respects, nil, "", []string{"OK Application/argocd/plumbline"}},
		"all rules, not for syncs":    {"ignoreDifferences: [" + bundles + ", {kind: Secret, jsonPointers: [/data]}]", nil, "RespectIgnoreDifferences=true", []string{"Warning Application/argocd/plumbline"}},
		"wildcards":                   {"ignoreDifferences: [{group: '*', kind: '*', jsonPointers: [/data, /webhooks]}]" + respects, nil, "", []string{"OK Application/argocd/plumbline"}},
		"rules for other objects":     {"ignoreDifferences: [{group: '*', kind: '*', name: other, jsonPointers: [/data, /webhooks]}, {group: apps, kind: Deployment, jsonPointers: [/webhooks]}]" + respects, nil, "", all},
		"a jq path that is malformed": {"ignoreDifferences: [{group: '*', kind: '*', jsonPointers: [/data, /webhooks], jqPathExpressions: ['.x[']}]" + respects, nil, "cannot read a rule", []string{"Warning Application/argocd/plumbline"}},
		"the rest in argocd-cm":       {"ignoreDifferences: [" + bundles + "]" + respects, map[string]string{settings + "Secret": "jsonPointers:\n- /data\n"}, "", []string{"OK Application/argocd/plumbline"}},
		"all in argocd-cm":            {respects, map[string]string{settings + "all": "jsonPointers: [/data]\njqPathExpressions: ['.webhooks[].clientConfig.caBundle']"}, "", []string{"OK Application/argocd/plumbline"}},
		"another kind in argocd-cm":   {respects, map[string]string{settings + "apps_Deployment": "jsonPointers: [/data, /webhooks]"}, "", all},
		"malformed YAML in argocd-cm": {respects, map[string]string{settings + "all": "jsonPointers: [/data"}, "key " + settings + "all", append([]string{"Warning ConfigMap/argocd/argocd-cm"}, all...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.put(t, objectOf(t, anApplication, tc.spec))
			f.argoCDSettings(t, tc.settings)
			expect(t, f.admin, tc.says, tc.want...)
		})
	}
	t.Run("what is to be pasted suffices", func(t *testing.T) {
		f.put(t, objectOf(t, anApplication, "{}"))
		f.argoCDSettings(t, nil)
		_, full := f.ignored(t, f.admin)
		f.put(t, objectOf(t, anApplication, pasted(t, full)))
		expect(t, f.admin, "", "OK Application/argocd/plumbline")
	})
	t.Run("the Application is found by the mark on what it applies", func(t *testing.T) {
		elsewhere := objectOf(t, anApplication, "destination: {server: 'https://this.example.com'}")
		f.put(t, elsewhere)
		expect(t, f.admin, "no Application of it", "Info")
		const mark = "argocd.argoproj.io/tracking-id"
		f.markConfigurations(t.Context(), t, nil, map[string]string{mark: "plumbline:admissionregistration.k8s.io/MutatingWebhookConfiguration:plumbline-system/plumbline"})
		expect(t, f.admin, "", append([]string{"Warning Application/argocd/plumbline"}, all...)...)
		f.markConfigurations(t.Context(), t, nil, map[string]string{mark: "another:admissionregistration.k8s.io/MutatingWebhookConfiguration:plumbline-system/plumbline"})
		expect(t, f.admin, "is not in this cluster", "Unknown")
		f.markConfigurations(t.Context(), t, nil, nil)
	})
	t.Run("who may read nothing learns nothing", func(t *testing.T) {
		f.put(t, objectOf(t, anApplication, respects))
		nobody := filepath.Join(t.TempDir(), "nobody.kubeconfig")
		must(t, apiserver.Enrol(f.env, nobody, "nobody"))
		expect(t, nobody, "may not list mutatingwebhookconfigurations", "Unknown")
		f.role(t, "configurations", []string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, "list")
		must(t, apiserver.Bind(t.Context(), f.kube, "configurations", "configurations", "readers"))
		reader := filepath.Join(t.TempDir(), "reader.kubeconfig")
		must(t, apiserver.Enrol(f.env, reader, "reader", "readers"))
		expect(t, reader, "may not list applications.argoproj.io", "Unknown")
		f.role(t, "applications", []string{"argoproj.io"}, []string{"applications"}, "list")
		must(t, apiserver.Bind(t.Context(), f.kube, "applications", "applications", "readers"))
		expect(t, reader, "may not list configmaps named argocd-cm", "Unknown"+theMutating, "Unknown"+theSecret, "Unknown"+theValidating)
	})
}

// argoCDSettings replaces the data of argocd-cm.
func (f *farm) argoCDSettings(t *testing.T, data map[string]string) {
	t.Helper()
	raw := map[string]any{}
	for key, value := range data {
		raw[key] = value
	}
	f.put(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "argocd", "name": "argocd-cm"}, "data": raw,
	}})
}

const aRelease = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: flux-system, name: plumbline}
spec:
  interval: 5m
  chart: {spec: {chart: charts/plumbline, sourceRef: {kind: GitRepository, name: plumbline}}}
`

const aKustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: flux-system, name: plumbline}
spec:
  interval: 5m
  prune: true
  sourceRef: {kind: GitRepository, name: plumbline}
`

// TestDoctorGitOps_Flux does the same with Flux.
func TestDoctorGitOps_Flux(t *testing.T) {
	rotation.Share(t, 3)
	f := newFarm(t, helmKinds, kustomizeKinds)
	if got, full := f.ignored(t, f.admin); !cmp.Equal(got, []string{"Info"}) {
		t.Errorf("before Flux installs anything: %s", inFull(full))
	}
	all := []string{"Warning" + theLeaseA, "Warning" + theLeaseW, "Warning" + theMutating, "Warning" + theSecret, "Warning" + theValidating}
	cases := map[string]struct {
		ignore string
		want   []string // nil: OK
	}{
		"no rules":                {"[]", all},
		"some rules":              {"[{paths: [/webhooks/0/clientConfig/caBundle], target: {kind: '.*WebhookConfiguration'}}, {paths: [/spec], target: {kind: Lease, name: 'plumbline-.*'}}]", []string{"Warning" + theSecret}},
		"rules for every object":  {"[{paths: [/webhooks, /data, /spec]}]", nil},
		"by label":                {"[{paths: [/webhooks, /data, /spec], target: {labelSelector: 'app.kubernetes.io/name=plumbline'}}]", nil},
		"rules for other objects": {"[{paths: [/webhooks, /data, /spec], target: {namespace: shop, name: other}}]", all},
		"a rule that is malformed": {"[{paths: [/webhooks, /data, /spec]}, {paths: [/x], target: {kind: '('}}]",
			[]string{"Warning FLUX"}},
	}
	for kind, of := range map[string]struct{ rest, rules string }{
		"HelmRelease":   {aRelease, "driftDetection: {mode: enabled, ignore: %s}"},
		"Kustomization": {aKustomization, "ignore: %s"},
	} {
		object := kind + "/flux-system/plumbline"
		f.put(t, objectOf(t, of.rest, "{}"))
		mark := objectOf(t, of.rest, "{}").GroupVersionKind().Group
		f.markConfigurations(t.Context(), t, map[string]string{mark + "/name": "plumbline", mark + "/namespace": "flux-system"}, nil)
		for name, tc := range cases {
			t.Run(kind+", "+name, func(t *testing.T) {
				f.put(t, objectOf(t, of.rest, strings.Replace(of.rules, "%s", tc.ignore, 1)))
				want := []string{"OK " + object}
				if tc.want != nil {
					want = nil
					for _, line := range tc.want {
						want = append(want, strings.Replace(line, "FLUX", object, 1))
					}
				}
				got, full := f.ignored(t, f.admin)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s\n%s", diff, inFull(full))
				}
			})
		}
		t.Run(kind+", what is to be pasted suffices", func(t *testing.T) {
			spec := strings.Replace(of.rules, "%s", "[{paths: [/data/ca.crt], target: {kind: Secret}}]", 1)
			f.put(t, objectOf(t, of.rest, spec))
			_, full := f.ignored(t, f.admin)
			object := objectOf(t, of.rest, spec)
			object.Object["spec"] = merged(object.Object["spec"], objectOf(t, of.rest, pasted(t, full)).Object["spec"])
			f.put(t, object)
			if got, full := f.ignored(t, f.admin); len(got) != 1 || !strings.HasPrefix(got[0], "OK ") {
				t.Errorf("got %s", inFull(full))
			}
		})
	}
	t.Run("an object that Flux leaves alone", func(t *testing.T) { f.leftAlone(t) })
}

// leftAlone: rules and marks of the objects add up.
func (f *farm) leftAlone(t *testing.T) {
	f.put(t, objectOf(t, aRelease, "driftDetection: {mode: enabled, ignore: [{paths: [/webhooks, /spec]}]}"))
	const mark = "helm.toolkit.fluxcd.io"
	f.markConfigurations(t.Context(), t, map[string]string{mark + "/name": "plumbline", mark + "/namespace": "flux-system"}, nil)
	if got, full := f.ignored(t, f.admin); !cmp.Equal(got, []string{"Warning" + theSecret}) {
		t.Errorf("before: %s", inFull(full))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-webhook-tls"}}
	must(t, f.kube.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Annotations = map[string]string{mark + "/driftDetection": "disabled"}
	must(t, f.kube.Update(t.Context(), secret))
	if got, full := f.ignored(t, f.admin); !cmp.Equal(got, []string{"OK HelmRelease/flux-system/plumbline"}) {
		t.Errorf("after: %s", inFull(full))
	}
	f.put(t, objectOf(t, aRelease, "driftDetection: {mode: disabled}"))
	secret.Annotations = nil
	must(t, f.kube.Update(t.Context(), secret))
	if got, full := f.ignored(t, f.admin); !cmp.Equal(got, []string{"OK HelmRelease/flux-system/plumbline"}) {
		t.Errorf("with drift detection off: %s", inFull(full))
	}
}
