// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/endpoints"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// without has the release carried out by a router that is no mesh, in a cluster of Services and pods.
func (w *world) without() *routertest.Proxy {
	w.Helper()
	proxy := &routertest.Proxy{}
	w.Mesh, w.Routers, w.Endpoints = nil, proxy, endpoints.Counter{Reader: w.Client}
	return proxy
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Client.Create(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// podOf a Deployment, which is ready or not.
func podOf(deployment, ip string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: deployment + "-5d4f8-" + ip, Labels: map[string]string{"pod-template-hash": "5d4f8"}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-5d4f8", UID: "r", Controller: new(true),
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// canaries of a hundred requests.
func canaries(t *testing.T, proxy *routertest.Proxy) (n int, divided bool) {
	t.Helper()
	for range 100 {
		answer, err := proxy.Ask(routertest.Request{Service: types.NamespacedName{Namespace: "shop", Name: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		if divided = answer.Divided; answer.Variation.Name == "canary" {
			n++
		}
	}
	return n, divided
}

func (w *world) edit(change func(*v1alpha1.ABRelease)) {
	w.Helper()
	var r v1alpha1.ABRelease
	if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, &r); err != nil {
		w.Fatal(err)
	}
	change(&r)
	r.Generation++
	if err := w.Client.Update(w.Context(), &r); err != nil {
		w.Fatal(err)
	}
}

// looks does so twice: what is decided is told to the router at the next look.
func (w *world) looks() *v1alpha1.ABRelease {
	w.Helper()
	w.look()
	return w.look()
}

// A router that is no mesh got weights, and was not told of which Service; ready endpoints were counted
// in the caches of the mesh alone.
func TestARouterThatIsNoMeshWorksAlone(t *testing.T) {
	w := newWorld(t)
	proxy := w.without()
	if r := w.looks(); r.Status.Effective != nil || !strings.Contains(conditionOf(r, v1alpha1.ConditionReady).Message, "there is no Service web") {
		t.Fatalf("without the Service in force is %+v, Ready %+v", r.Status.Effective, conditionOf(r, v1alpha1.ConditionReady))
	}
	canary := podOf("canary", "10.1.0.2", corev1.ConditionTrue)
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, SessionAffinity: corev1.ServiceAffinityClientIP, // which proxies of the mesh leave alone
	}}, podOf("web", "10.1.0.1", corev1.ConditionTrue), canary)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(0), "canary": v1alpha1.Percent(100)}
	})
	r := w.looks()
	if n, _ := canaries(t, proxy); n != 100 || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%d of 100 requests go to the canary, Ready is %+v", n, conditionOf(r, v1alpha1.ConditionReady))
	}
	if o := r.Status.Observed; len(o) != 2 || o[1].ReadyEndpoints != 1 || o[1].Targets != 1 {
		t.Errorf("observed is %+v", o)
	}
	canary.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := w.Client.Status().Update(t.Context(), canary); err != nil {
		t.Fatal(err)
	}
	r = w.looks()
	if n, divided := canaries(t, proxy); n != 0 || !divided || len(r.Status.Clamped) != 1 {
		t.Errorf("%d of 100 requests go to a canary without ready endpoints, clamped are %+v", n, r.Status.Clamped)
	}
	if err := w.Client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)}); err != nil {
		t.Fatal(err)
	}
	if _, divided := canaries(t, proxy); divided {
		t.Error("requests are divided for a release that is gone")
	}
}

func conditionOf(r *v1alpha1.ABRelease, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Of two releases of a Service the older one divides it. The router of the other one went on.
func TestAReleaseThatLosesItsServiceIsRemovedFromItsRouter(t *testing.T) {
	w := newWorld(t)
	w.looks()
	if w.router.Current() == nil {
		t.Fatal("nothing is applied")
	}
	older := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "older", UID: "u0", CreationTimestamp: metav1.NewTime(noon.AddDate(-1, 0, 0))}}
	w.edit(func(r *v1alpha1.ABRelease) { older.Spec = r.Spec; r.CreationTimestamp = metav1.NewTime(noon) })
	w.create(older)
	w.router.Break(errors.New("it does not answer"))
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err == nil {
		t.Error("a router that does not answer is not asked again")
	}
	w.router.Break(nil)
	if r := w.look(); r.Status.Effective != nil || w.router.Current() != nil {
		t.Errorf("in force is %+v, and the router has %+v", r.Status.Effective, w.router.Current())
	}
}

func TestWhatTheRouterCannotCarryOutLeavesInForceWhatWas(t *testing.T) {
	w := newWorld(t)
	w.looks()
	w.router.Refuse(errors.New("it knows no such header"))
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(0), "canary": v1alpha1.Percent(100)}
	})
	r := w.looks()
	if c := conditionOf(r, v1alpha1.ConditionStalled); r.Status.Split != "stable 90 / canary 10" || c.Reason != reasonInvalid || !strings.Contains(c.Message, "it knows no such header") {
		t.Errorf("the split is %q, Stalled %+v", r.Status.Split, c)
	}
	if is := w.router.Current().Shares; is[1].Weight != traffic.Total/10 {
		t.Errorf("the router has %+v", is)
	}
}
