// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	connector "github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAReleaseGoesThroughItsSharesAtARoute(t *testing.T) {
	d := newDelivery(t)
	d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.weights("web", 9_000, 1_000)
	if a := r.Status.Acknowledged; a.Knowledge != v1alpha1.AcknowledgedAccepted || a.Sequence != r.Status.Effective.Sequence {
		t.Errorf("acknowledged is %+v, and effective %d", a, r.Status.Effective.Sequence)
	}
	for _, canary := range []int{50, 100, 0, 25} {
		d.split(r, canary)
		d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "stable")
		d.weights("web", int64(100-canary)*100, int64(canary)*100)
	}
	if of := r.Status.Routers; len(of) != 1 || of[0].Sequence != r.Status.Effective.Sequence || of[0].Stable != "stable" {
		t.Errorf("the states of the routers are %+v, and effective is %d", of, r.Status.Effective.Sequence)
	}
	d.delete(r)
	d.weights("web", 10_000, 0)
}

func TestOneParentOfTwoThatRefusesHoldsARelease(t *testing.T) {
	d := newDelivery(t)
	d.edge.set(func() { d.edge.refuses["outside"] = "NotAllowedByListeners" })
	d.route("web", "inside", "outside")
	r := d.release("autumn", "routers: ["+d.target("web", "main")+"]")
	d.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "Gateway "+d.namespace+"/outside (controller example.com/gateway: Accepted is False (NotAllowedByListeners)")
	d.edge.set(func() { delete(d.edge.refuses, "outside") })
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.delete(r)
}

func TestAStatusThatNeverComesIsOverdueByName(t *testing.T) {
	d := newDelivery(t)
	d.edge.set(func() { d.edge.away = true })
	d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]", "acknowledgment: {deadline: 10s}")
	d.says(r, v1alpha1.ConditionStalled, metav1.ConditionTrue, "Gateway "+d.namespace+"/edge (no controller has reported on the parent)")
	d.edge.set(func() { d.edge.away = false })
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.delete(r)
}

// reapply applies a manifest again and again, as a GitOps tool does, until stop is called.
func (d *delivery) reapply(manifest *unstructured.Unstructured) (stop func()) {
	ctx, cancel := context.WithCancel(d.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), client.FieldOwner("argocd-controller"), client.ForceOwnership)
			if err != nil && ctx.Err() == nil {
				d.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func TestAGitOpsToolThatReappliesIsNamedByTheReleaseAndThenLeftAlone(t *testing.T) {
	d := newDelivery(t)
	d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	stop := d.reapply(d.manifest("web", "edge"))
	d.told(r, "RouteChangedByAnother", `field manager "argocd-controller" changed the weights of the route, and the router restored them`)
	d.says(r, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "they are left alone until")
	stop()
	if of := r.Status.Routers; len(of) != 1 || len(of[0].Restores) != connector.MaxRestores || of[0].LastEditor != "argocd-controller" {
		t.Errorf("the states of the routers are %+v", of)
	}
	d.weights("web", 1, 1)
	d.stop()
	d.lead()
	d.looks() // the next leader holds the weights too
	d.says(r, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "they are left alone until")
	d.weights("web", 1, 1)
	d.split(r, 0) // a rollback does not wait
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "stable 100")
	d.weights("web", 10_000, 0)
	d.delete(r)
}

func TestARouteThatDoesNotFitIsRefusedByName(t *testing.T) {
	d := newDelivery(t)
	two := func(change func(rules []any) []any) func(*unstructured.Unstructured) {
		return func(route *unstructured.Unstructured) {
			rules, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
			must(t, err)
			must(t, unstructured.SetNestedSlice(route.Object, change(rules), "spec", "rules"))
		}
	}
	backends := func(rules []any) []any { return rules[0].(map[string]any)["backendRefs"].([]any) }
	for reason, change := range map[string]func(*unstructured.Unstructured){
		"RouteNotFound: HTTPRoute":                     nil,
		"RuleNotNamed: HTTPRoute":                      two(func(rules []any) []any { return append(rules, map[string]any{"name": "other"}) }),
		"OtherBackendHasWeight: Service next, port 80": two(func(rules []any) []any { backends(rules)[1].(map[string]any)["name"] = "next"; return rules }),
		"BackendsDiffer: the rule of HTTPRoute": two(func(rules []any) []any {
			rules[0].(map[string]any)["backendRefs"] = backends(rules)[:1]
			return rules
		}),
		"FiltersDiffer: in HTTPRoute": two(func(rules []any) []any {
			backends(rules)[1].(map[string]any)["filters"] = []any{map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"remove": []any{"x-a"}}}}
			return rules
		}),
	} {
		t.Run(reason, func(t *testing.T) {
			d := &delivery{T: t, namespace: d.namespace, router: d.router}
			route := d.manifest("web", "edge")
			if change != nil {
				change(route)
				d.create(route)
			}
			r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
			d.says(r, v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
			must(t, client.IgnoreNotFound(admin.Delete(t.Context(), route)))
			d.delete(r) // a route that is gone holds no release
		})
	}
	for capability, split := range map[string]string{
		"Sticky":    "{type: Sticky, percentages: {stable: 90, canary: 10}, sticky: {header: x-user}}",
		"HeaderMap": `{type: Header, percentages: {stable: 90, canary: 10}, headerMatch: {header: x-beta, values: {"yes": canary}}}`,
	} {
		t.Run(capability, func(t *testing.T) {
			d := &delivery{T: t, namespace: d.namespace, router: d.router}
			r := d.release("autumn", "routers: ["+d.target("web", "")+"]", "trafficSplit: "+split)
			d.says(r, v1alpha1.ConditionStalled, metav1.ConditionTrue, "the router lacks the capability "+capability)
			d.delete(r)
		})
	}
}

func TestTheSecondReleaseOnARouteIsRefusedWithTheNameOfTheFirst(t *testing.T) {
	d := newDelivery(t)
	d.route("web", "edge")
	d.service("pay")
	first := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(first, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	second := d.release("winter", "routers: ["+d.target("web", "")+"]", "serviceName: pay")
	d.says(second, v1alpha1.ConditionStalled, metav1.ConditionTrue, "HTTPRoute "+d.namespace+"/web belongs to release "+d.namespace+"/autumn")
	d.delete(first)
	d.says(second, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.weights("web", 9_000, 1_000)
	d.delete(second)
}

func TestAReleaseOverTheMeshAndARouteWaitsForBoth(t *testing.T) {
	d := newDelivery(t)
	d.edge.set(func() { d.edge.away = true })
	d.route("web", "edge")
	r := d.release("autumn", "routers: [{name: mesh}, "+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "Gateway "+d.namespace+"/edge (no controller has reported on the parent)")
	d.edge.set(func() { d.edge.away = false })
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	if a := r.Status.Acknowledged; a.Knowledge != v1alpha1.AcknowledgedAccepted || a.Count != "2/2" {
		t.Errorf("acknowledged is %+v", a)
	}
	d.delete(r)
}

func TestADeletedReleaseWaitsForTheGateway(t *testing.T) {
	d := newDelivery(t)
	d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.edge.set(func() { d.edge.away = true })
	must(t, admin.Delete(t.Context(), r))
	d.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "and the route has generation")
	d.weights("web", 10_000, 0)
	d.edge.set(func() { d.edge.away = false })
	d.gone(r)
	d.weights("web", 10_000, 0)
}

func TestBackendsThatChangeMidRunHoldTheReleaseByName(t *testing.T) {
	d := newDelivery(t)
	route := d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	change := func(other string) {
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(route), route))
		changed := plainRoute("web", other)
		must(t, unstructured.SetNestedField(route.Object, changed.Object["spec"].(map[string]any)["rules"], "spec", "rules"))
		must(t, admin.Update(t.Context(), route, client.FieldOwner("kubectl-edit")))
	}
	change("next")
	d.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "OtherBackendHasWeight: Service next")
	d.weights("web", 1, 1)
	change("canary")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.weights("web", 9_000, 1_000)
	d.delete(r)
}

// The API server is cut off from the connector alone, so that the test can read what the release tells.
func TestARollbackThatDoesNotReachTheAPIServerIsTold(t *testing.T) {
	d := newDelivery(t)
	d.route("web", "edge")
	r := d.release("autumn", "routers: ["+d.target("web", "")+"]")
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	d.line.set(errors.New("connection refused"))
	d.split(r, 0)
	d.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "reading HTTPRoute "+d.namespace+"/web: connection refused")
	d.weights("web", 9_000, 1_000)
	d.line.set(nil)
	d.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "stable 100")
	d.weights("web", 10_000, 0)
	d.delete(r)
}
