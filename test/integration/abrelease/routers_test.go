// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/internal/controller/trafficrouter"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// receiver carries out what it is told, unless it is closed or says that it does not know.
type receiver struct {
	mu       sync.Mutex
	sequence uint64
	weights  map[string]int
	// told are the actions in their order, with the weight of the canary.
	told []string
	// lies is a sequence that the receiver answers with instead of its own.
	lies uint64
	// refuses with a status and the text; unknown has it not know whether the split is in force.
	refuses, unknown string
	url              string
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != "" {
		http.Error(w, r.refuses, http.StatusServiceUnavailable)
		return
	}
	if request.Method == http.MethodPost {
		var of struct {
			Action   string
			Sequence uint64
			Arms     []struct {
				Variation   string
				BasisPoints int
			}
		}
		if err := json.NewDecoder(request.Body).Decode(&of); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.sequence, r.weights = of.Sequence, map[string]int{}
		for _, a := range of.Arms {
			r.weights[a.Variation] = a.BasisPoints
		}
		if of.Action == "Remove" {
			r.sequence = 0
		}
		r.told = append(r.told, fmt.Sprint(of.Action, " ", r.weights["canary"]))
	}
	knowledge := "Proven"
	if r.unknown != "" || r.sequence == 0 {
		knowledge = "Unknown"
	}
	sequence := r.sequence
	if r.lies != 0 {
		sequence = r.lies
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"sequence": sequence, "knowledge": knowledge, "message": r.unknown, "version": "edge 1.2"})
}

func (r *receiver) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *receiver) canary() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.weights["canary"]
}

func resolve(context.Context, notify.SecretRef) (string, error) {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))), nil
}

// loopback is where receivers and Traefiks of tests are.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// connects has the releases of a shop name TrafficRouters.
func (s *shop) connects() *connect.Registry {
	egress := deliver.Egress{PlainHTTP: true, Allowed: loopback}
	registry := &connect.Registry{Context: s.t.Context(), Client: admin, Sender: deliver.NewAsker(resolve, egress, nil), Now: time.Now}
	s.connectors = registry
	return registry
}

// trafficRouter is one with the name of the shop.
func (s *shop) trafficRouter(url string, change func(*v1alpha1.TrafficRouter)) *v1alpha1.TrafficRouter {
	s.t.Helper()
	router := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: v1alpha1.TrafficRouterSpec{
		Type: v1alpha1.TrafficRouterWebhook, AllowedNamespaces: &metav1.LabelSelector{},
		Webhook: &v1alpha1.WebhookRouter{URL: url, SecretRef: v1alpha1.RouterSecretKey{Name: "edge", Key: "key"}},
	}}
	if change != nil {
		change(router)
	}
	s.create(router)
	s.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(s.t.Context()), router); client.IgnoreNotFound(err) != nil {
			s.t.Error(err)
		}
	})
	return router
}

// routed is a release whose canary gets 10 % at routers.
func (s *shop) routed(routers string) *v1alpha1.ABRelease {
	s.t.Helper()
	return s.release("autumn", `{type: Percentage, percentages: {stable: 90, canary: 10}}`+"\nrouters: "+routers)
}

func (s *shop) gone(r *v1alpha1.ABRelease) {
	s.t.Helper()
	poll.Until(s.t, patience, "the release is gone", func() error {
		err := admin.Get(s.t.Context(), client.ObjectKeyFromObject(r), &v1alpha1.ABRelease{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

func TestAReleaseOverAReceiver(t *testing.T) {
	s, _ := shopWithTwo(t)
	registry, edge := s.connects(), newReceiver(t)
	router := s.trafficRouter(edge.url, nil)
	s.start(asksProxies)
	r := s.routed("[{name: " + router.Name + "}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	if got := edge.canary(); got != 1_000 {
		t.Errorf("the receiver gives %d to the canary, want 1000", got)
	}
	edge.set(func() { edge.refuses = "edge-3 is frozen" })
	s.patch(r, `{spec: {trafficSplit: {percentages: {stable: 80, canary: 20}}}}`)
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, router.Name+" (the receiver refuses with status 503: edge-3 is frozen)")
	status := &trafficrouter.Controller{Client: admin, Reports: registry.ReportOf, Resolve: resolve, Clock: clock.RealClock{}}
	s.seen(status, router, "RequestsFail", metav1.ConditionFalse)
	if last := router.Status.LastRefusal; last == nil || !contains(last.Message, "edge-3 is frozen") {
		t.Errorf("the last refusal is %+v", last)
	}
	edge.set(func() { edge.refuses = "" })
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 20")
	s.seen(status, router, "Configured", metav1.ConditionTrue)
	if router.Status.Version != "edge 1.2" || len(router.Status.Capabilities) != 0 {
		t.Errorf("the status is %+v", router.Status)
	}
	s.must(admin.Delete(t.Context(), r))
	s.gone(r)
	edge.set(func() {
		if n := len(edge.told); n < 2 || edge.told[n-1] != "Remove 0" || edge.told[n-2] != "Apply 0" {
			t.Errorf("the receiver was told %q, want that the canary has 0 before the removal", edge.told)
		}
	})
}

// The sequences of a Service outlive its releases, and no later decision is above the highest number.
func TestAReceiverThatLiesAboutItsSequenceMovesNoSequence(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.connects()
	edge := newReceiver(t)
	router := s.trafficRouter(edge.url, nil)
	s.start(asksProxies)
	r := s.routed("[{name: " + router.Name + "}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	edge.set(func() { edge.lies = math.MaxUint64 })
	s.patch(r, `{spec: {trafficSplit: {percentages: {stable: 80, canary: 20}}}}`)
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "the receiver has the later sequence 18446744073709551615")
	s.says(r, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "later sequence")
	s.must(admin.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	if is := r.Status.Effective.Sequence; is > 10 {
		t.Errorf("the effective sequence is %d", is)
	}
	edge.set(func() { edge.lies = 0 })
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 20")
}

// seen looks at a TrafficRouter, and demands the reason of Ready.
func (s *shop) seen(status *trafficrouter.Controller, router *v1alpha1.TrafficRouter, reason string, is metav1.ConditionStatus) {
	s.t.Helper()
	// What a router said last may be from before it has started again.
	poll.Until(s.t, patience, "Ready is "+string(is)+" with "+reason, func() error {
		if _, err := status.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: router.Name}}); err != nil {
			return err
		}
		if err := admin.Get(s.t.Context(), client.ObjectKeyFromObject(router), router); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(router.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != reason || c.Status != is {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

func TestAReleaseIsDeletedOnlyWhenAReceiverHasReturnedItsRequests(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.connects()
	edge := newReceiver(t)
	router := s.trafficRouter(edge.url, nil)
	s.start(asksProxies)
	r := s.routed("[{name: " + router.Name + "}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	edge.set(func() { edge.refuses = "closed" })
	s.must(admin.Delete(t.Context(), r))
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "status 503: closed")
	edge.set(func() { edge.refuses = "" })
	s.gone(r)
	if got := edge.canary(); got != 0 {
		t.Errorf("the release is gone, and the receiver gives %d to the canary", got)
	}
}

// A release over the mesh and a receiver waits for the slower one.
func TestAReleaseOverTwoRoutersWaitsForBoth(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.connects()
	edge := newReceiver(t)
	edge.unknown = "two of three edges have it"
	router := s.trafficRouter(edge.url, nil)
	s.start(leads) // the mesh acknowledges at once
	r := s.routed("[{name: mesh}, {name: " + router.Name + "}]")
	s.says(r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "two of three edges have it")
	edge.set(func() { edge.unknown = "" })
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	s.must(admin.Delete(t.Context(), r))
	s.gone(r)
}

// A release that cannot have a router is refused by its name, and looked at again when the TrafficRouter changes.
func TestARouterIsRefusedByName(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.connects()
	edge := newReceiver(t)
	s.start(asksProxies)
	r := s.release("autumn", `{type: Sticky, percentages: {stable: 90, canary: 10}, sticky: {header: x-user}}`+"\nrouters: [{name: "+s.namespace+"}]")
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionFalse, "spec.routers: TrafficRouter "+s.namespace+" does not exist")
	router := s.trafficRouter(edge.url, func(r *v1alpha1.TrafficRouter) {
		r.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "another"}}
	})
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionFalse, "does not allow namespace "+s.namespace)
	s.must(admin.Patch(t.Context(), router, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"allowedNamespaces": {"matchLabels": null}}}`))))
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionFalse, "the router lacks the capability Sticky")
	s.must(admin.Patch(t.Context(), router, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"webhook": {"capabilities": ["Sticky"]}}}`))))
	s.says(r, v1alpha1.ConditionReady, metav1.ConditionTrue, "canary 10")
	err := admin.Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"routers": [{"name": "mesh"}]}}`)))
	if err == nil || !contains(err.Error(), "routers are immutable") {
		t.Errorf("other routers get %v", err)
	}
}
