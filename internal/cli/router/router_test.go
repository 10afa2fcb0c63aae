// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/actions/routers"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// routerOf is a TrafficRouter that is Ready.
func routerOf(name string, kind v1alpha1.TrafficRouterType, change ...func(*v1alpha1.TrafficRouter)) *v1alpha1.TrafficRouter {
	r := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: clitest.Before(48 * time.Hour)}}
	r.Spec.Type, r.Spec.AllowedNamespaces = kind, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	r.Status = v1alpha1.TrafficRouterStatus{ObservedGeneration: 1, Knowledge: v1alpha1.AcknowledgedAccepted}
	setReady(r, metav1.ConditionTrue, "Configured", "releases of the allowed namespaces can name the router")
	for _, c := range change {
		c(r)
	}
	return r
}

func setReady(r *v1alpha1.TrafficRouter, status metav1.ConditionStatus, reason, message string) {
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: clitest.Before(time.Hour)}}
}

func failing(r *v1alpha1.TrafficRouter) {
	r.Spec.Webhook = &v1alpha1.WebhookRouter{URL: "https://edge", SecretRef: v1alpha1.RouterSecretKey{Name: "edge-router", Key: "key"}}
	r.Status.Knowledge, r.Status.Version, r.Status.Capabilities = v1alpha1.AcknowledgedProven, "edge 1.2", []string{"Sticky", "Override"}
	setReady(r, metav1.ConditionFalse, v1alpha1.ReasonRequestsFail, "the receiver refuses with status 503: frozen")
	r.Status.LastRefusal = &v1alpha1.RouterRefusal{Message: "the receiver refuses with status 503: frozen", RefusalTime: clitest.Before(time.Minute)}
}

func releaseOf(name string, entries ...v1alpha1.ReleaseRouter) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1alpha1.ABReleaseSpec{ServiceName: "web", Routers: entries}}
	r.Status.Split, r.Status.Acknowledged = "90/10", &v1alpha1.SplitAcknowledgment{Knowledge: v1alpha1.AcknowledgedUnknown, Count: "0/1"}
	r.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: v1alpha1.ConditionAcknowledged, Status: metav1.ConditionFalse, Message: "0 of 1 routers have acknowledged sequence 3"},
	}
	return r
}

// route is an HTTPRoute that Argo CD applies without a rule.
func route() client.Object {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "stable"}, map[string]any{"name": "canary"}}}}}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"})
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "shop:gateway.networking.k8s.io/HTTPRoute:shop/web"})
	return object
}

func application() client.Object {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"})
	object.SetNamespace("argocd")
	object.SetName("shop")
	return object
}

func edge() []client.Object {
	return []client.Object{
		routerOf("edge", v1alpha1.TrafficRouterWebhook, failing),
		routerOf("gateway", v1alpha1.TrafficRouterGatewayAPI),
		routerOf("new", v1alpha1.TrafficRouterWebhook, func(r *v1alpha1.TrafficRouter) {
			r.Spec.AllowedNamespaces, r.Status = nil, v1alpha1.TrafficRouterStatus{}
		}),
		releaseOf("autumn", v1alpha1.ReleaseRouter{Name: v1alpha1.RouterMesh}, v1alpha1.ReleaseRouter{Name: "edge"}),
		releaseOf("winter", v1alpha1.ReleaseRouter{Name: "gateway", GatewayAPI: &v1alpha1.ReleaseRoute{Kind: v1alpha1.RouteHTTP, Name: "web"}}),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
		route(), application(),
	}
}

// allow answers reviews of access: each right but the refused ones, by verb and resource.
func allow(refused ...string) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
		review, asks := object.(*authorizationv1.SubjectAccessReview)
		if !asks {
			return clitest.AnswerWhoami(ctx, api, object, options...)
		}
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "system:serviceaccount:plumbline-system:plumbline-xds" && !slices.Contains(refused, a.Verb+" "+a.Resource)
		return nil
	}}
}

func run(t *testing.T, hooks interceptor.Funcs, args ...string) clitest.Answer {
	t.Helper()
	return clitest.Cluster{Objects: edge(), Hooks: hooks}.Run(t, verbs, "", append([]string{"router"}, args...)...)
}

func TestRouter_Golden(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"list":          {[]string{"list"}, 0},
		"list-wide":     {[]string{"list", "-o", "wide", "--no-headers"}, 0},
		"list-name":     {[]string{"list", "-o", "name"}, 0},
		"show":          {[]string{"show", "edge"}, 0},
		"show-new":      {[]string{"show", "new"}, 0},
		"show-json":     {[]string{"show", "edge", "-o", "json"}, 0},
		"check-webhook": {[]string{"check", "edge", "--system-namespace", "plumbline-system"}, 1},
		"check-gateway": {[]string{"check", "gateway", "--system-namespace", "plumbline-system"}, 1},
		"check-new":     {[]string{"check", "new", "--system-namespace", "plumbline-system"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, allow("patch httproutes"), tc.args...)
			if got.Code != tc.code {
				t.Errorf("%q gave %d, want %d: %s", tc.args, got.Code, tc.code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stderr+"--- stdout\n"+got.Stdout)
		})
	}
}

func TestRouterCheck_PassesWithoutAProblem(t *testing.T) {
	objects := []client.Object{routerOf("gateway", v1alpha1.TrafficRouterGatewayAPI), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}}
	got := clitest.Cluster{Objects: objects, Hooks: allow()}.Run(t, verbs, "", "router", "check", "gateway", "-o", "json", "--system-namespace", "plumbline-system")
	var findings routers.Findings
	if err := json.Unmarshal([]byte(got.Stdout), &findings); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if got.Code != 0 || len(findings.Findings) != 5 || findings.Has(routers.Problem) || findings.Has(routers.Unknown) {
		t.Errorf("%+v", got)
	}
}

// Objects that the user may not read must not make a check content.
func TestRouterCheck_IsUnknownWithoutPermissions(t *testing.T) {
	hooks := interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, asks := object.(*authorizationv1.SubjectAccessReview); asks {
				return apierrors.NewForbidden(schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", errors.New("no"))
			}
			return clitest.AnswerWhoami(ctx, api, object, options...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, releases := list.(*v1alpha1.ABReleaseList); releases {
				return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "abreleases"}, "", errors.New("no"))
			}
			return api.List(ctx, list, options...)
		},
	}
	got := run(t, hooks, "check", "gateway", "--system-namespace", "plumbline-system")
	for _, want := range []string{"? namespaces", "? gitops", "? permissions  which permissions the discovery server has: your user may not create subjectaccessreviews"} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("there is no %q in:\n%s", want, got.Stdout)
		}
	}
	if got.Code != 2 {
		t.Errorf("the exit code is %d", got.Code)
	}
	got = run(t, hooks, "list", "--no-headers")
	if got.Code != 0 || !strings.Contains(got.Stderr, "the number of releases is unknown") || strings.Count(got.Stdout, "<unknown>") < 3 {
		t.Errorf("a list is %+v", got)
	}
}

func TestRouter_RefusesWhatMakesNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no name":                  {[]string{"show"}, "name one TrafficRouter"},
		"two names":                {[]string{"check", "a", "b"}, "name one TrafficRouter"},
		"an output of another one": {[]string{"show", "a", "-o", "wide"}, "unable to match a printer"},
		"an argument of list":      {[]string{"list", "edge"}, "unexpected arguments: edge"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunOffline(t, verbs, "", append([]string{"router"}, tc.args...)...)
			if got.Code == 0 || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
	got := run(t, allow(), "show", "none")
	if got.Code != 1 || !strings.Contains(got.Stderr, `trafficrouters.plumbline.dev "none" not found`) {
		t.Errorf("of a router that is not there: %+v", got)
	}
	if got := run(t, allow(), "check", "none", "--system-namespace", "plumbline-system"); got.Code != 2 {
		t.Errorf("of a router that is not there: %+v", got)
	}
}

func TestRouter_Completes(t *testing.T) {
	for _, verb := range []string{"show", "check"} {
		if got := run(t, allow(), "list"); got.Code != 0 {
			t.Fatal(got)
		}
		got := clitest.Cluster{Objects: edge()}.Run(t, verbs, "", "__complete", "router", verb, "e")
		if !strings.HasPrefix(got.Stdout, "edge\tWebhook\n:4\n") {
			t.Errorf("%s is completed with %q", verb, got.Stdout)
		}
	}
}

// A receiver writes its refusal and its version.
func TestRouter_TextsOfAProgramDoNotMoveTheTerminal(t *testing.T) {
	hostile := routerOf("edge", v1alpha1.TrafficRouterWebhook, failing, func(r *v1alpha1.TrafficRouter) {
		r.Status.Version, r.Status.LastRefusal.Message = clitest.Hostile, clitest.Hostile
		setReady(r, metav1.ConditionFalse, v1alpha1.ReasonRequestsFail, clitest.Hostile)
	})
	for _, args := range [][]string{{"list", "-o", "wide"}, {"show", "edge"}, {"show", "edge", "-o", "json"}, {"check", "edge", "--system-namespace", "plumbline-system"}} {
		got := clitest.Cluster{Objects: []client.Object{hostile}, Hooks: allow()}.Run(t, verbs, "", append([]string{"router"}, args...)...)
		for line := range strings.SplitSeq(got.Stdout+got.Stderr, "\n") {
			if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }); i >= 0 {
				t.Errorf("%q: %q is printed", args, line)
			}
		}
	}
}
