// SPDX-License-Identifier: Apache-2.0

package routeowner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var web = gitops.RouteName{Kind: "HTTPRoute", Namespace: "shop", Name: "web"}

func objectOf(t *testing.T, manifest string) client.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func routeWith(t *testing.T, metadata string) client.Object {
	return objectOf(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: web, `+metadata+`}
spec: {rules: [{backendRefs: [{name: stable, weight: 90}, {name: canary, weight: 10}]}, {matches: []}]}
`)
}

const (
	byArgoCD = `annotations: {argocd.argoproj.io/tracking-id: "shop:gateway.networking.k8s.io/HTTPRoute:shop/web"}`
	byFlux   = `labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}`
	byHelm   = `labels: {helm.toolkit.fluxcd.io/name: apps, helm.toolkit.fluxcd.io/namespace: flux-system}`

	application = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: shop}
spec: `
	ignoring = `{syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}, ignoreDifferences: [{group: gateway.networking.k8s.io, kind: HTTPRoute, jqPathExpressions: ['.spec.rules[].backendRefs[]?.weight']}]}`

	kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: flux-system, name: apps}
spec: `
	release = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: flux-system, name: apps}
spec: `
)

func TestFindOwnership(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: gitops.SettingsName}, Data: map[string]string{
		"resource.customizations.ignoreDifferences.gateway.networking.k8s.io_HTTPRoute": "jqPathExpressions: ['.spec.rules[].backendRefs[]?.weight']",
	}}
	for name, tc := range map[string]struct {
		route   string
		objects []client.Object
		owner   string
		ignored bool
		unread  string
	}{
		"no tool applies it":                        {route: "labels: {team: shop}"},
		"Argo CD, without a rule":                   {route: byArgoCD, objects: []client.Object{objectOf(t, application+"{}")}, owner: "Argo CD (Application shop)"},
		"Argo CD, with the rule":                    {route: byArgoCD, objects: []client.Object{objectOf(t, application+ignoring)}, owner: "Argo CD (Application shop)", ignored: true},
		"Argo CD, with the rule for all of them":    {route: byArgoCD, objects: []client.Object{objectOf(t, application+`{syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}`), settings}, owner: "Argo CD (Application shop)", ignored: true},
		"Argo CD, with a rule that syncs pass over": {route: byArgoCD, objects: []client.Object{objectOf(t, application+strings.Replace(ignoring, "syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}, ", "", 1))}, owner: "Argo CD (Application shop)"},
		"Argo CD in another cluster":                {route: byArgoCD, owner: "Argo CD (Application shop)", unread: "no Application shop is in this cluster"},
		"a Kustomization, without a rule":           {route: byFlux, objects: []client.Object{objectOf(t, kustomization+"{}")}, owner: "Flux (Kustomization flux-system/apps)"},
		"a Kustomization, with the rule": {
			route: byFlux, objects: []client.Object{objectOf(t, kustomization+`{ignore: [{paths: [/spec/rules/0/backendRefs/0/weight, /spec/rules/0/backendRefs/1/weight], target: {kind: HTTPRoute, name: web}}]}`)},
			owner: "Flux (Kustomization flux-system/apps)", ignored: true,
		},
		"a Kustomization that is gone":             {route: byFlux, owner: "Flux (Kustomization flux-system/apps)", unread: "reading Kustomization flux-system/apps: "},
		"a HelmRelease that does not detect drift": {route: byHelm, objects: []client.Object{objectOf(t, release+"{}")}, owner: "Flux (HelmRelease flux-system/apps)", ignored: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fakeclient.NewBuilder(scheme).WithObjects(append(tc.objects, routeWith(t, tc.route))...).Build()
			got, found, err := FindOwnership(t.Context(), c, web)
			if err != nil || found != (tc.owner != "") {
				t.Fatalf("found is %t, %v", found, err)
			}
			if !found {
				return
			}
			if got.Owner.String() != tc.owner || got.Ignored != tc.ignored || !strings.HasPrefix(got.Unread, tc.unread) || (got.Unread == "") != (tc.unread == "") {
				t.Errorf("the ownership is %+v", got)
			}
			if !strings.Contains(got.Rule, "HTTPRoute") {
				t.Errorf("the rule is %q", got.Rule)
			}
		})
	}
}

func TestARouteThatIsNotThereHasNoOwner(t *testing.T) {
	scheme := runtime.NewScheme()
	if _, found, err := FindOwnership(t.Context(), fakeclient.NewBuilder(scheme).Build(), web); found || !apierrors.IsNotFound(err) {
		t.Errorf("found is %t, %v", found, err)
	}
}

func TestRoutesOf(t *testing.T) {
	release := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "autumn"}, Spec: v1alpha1.ABReleaseSpec{Routers: []v1alpha1.ReleaseRouter{
		{Name: v1alpha1.RouterMesh}, {Name: "edge", GatewayAPI: &v1alpha1.ReleaseRoute{Kind: v1alpha1.RouteHTTP, Name: "web"}}, {Name: "hook"},
	}}}
	if diff := cmp.Diff([]gitops.RouteName{web}, RoutesOf(release)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
