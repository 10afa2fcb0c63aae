// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestKindsThatGiveRightsOrHoldSecretsAreNeverWritten(t *testing.T) {
	tests := map[canon.GVK]bool{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                          true,
		{Version: "v1", Kind: "ConfigMap"}:                                          true,
		{Version: "v1", Kind: "Service"}:                                            true,
		{Version: "v1", Kind: "Secret"}:                                             false,
		{Version: "v1", Kind: "ServiceAccount"}:                                     false,
		{Version: "v1", Kind: "Namespace"}:                                          false,
		{Version: "v1", Kind: "Pod"}:                                                false,
		{Group: "shop.example", Version: "v1", Kind: "Secret"}:                      true,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:           false,
		{Group: "plumbline.dev", Version: "v1alpha1", Kind: "SpecGuard"}:            false,
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "Deployment"}:  false,
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "ConfigMap"}:           false,
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}:          true,
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}:                false,
		{Group: "certificates.k8s.io", Version: "v1", Kind: "Deployment"}:           false,
		{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}:        false,
		{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}: false,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:        false,
		{Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"}:                 false,
		{Version: "v1", Kind: "Node"}:                                               false,
		{Version: "v1", Kind: "PersistentVolume"}:                                   false,
		{Version: "v1", Kind: "Event"}:                                              false,
	}
	for gvk, want := range tests {
		if got := Writable(gvk); got != want {
			t.Errorf("%+v may be written: %t, want %t", gvk, got, want)
		}
	}
}

func TestAPlanThatAnswersARequestNeedsTheRightOfThePolicysAuthorToo(t *testing.T) {
	const bob, author = "bob update deployments apps/web in shop", "platform update deployments apps/web in shop"
	tests := map[string]struct {
		world   func(*world, *run)
		want    protocol.Answer
		denied  string
		reviews []string
	}{
		"both have it": {func(*world, *run) {}, protocol.Yes, "", []string{bob, author}},
		"who asked lacks it": {
			func(w *world, _ *run) { w.deny["bob update deployments"] = true }, protocol.No, "bob, the user of the plan, may not update it", []string{bob, author},
		},
		"the author lacks it": {
			func(w *world, _ *run) { w.deny["platform update deployments"] = true }, protocol.No, "platform, the user of the plan, may not update it", []string{bob, author},
		},
		"the author's right cannot be asked": {
			func(w *world, _ *run) { w.failing("review platform update deployments", errNetwork) }, protocol.Unknown, "", []string{bob, author},
		},
		"the author is not known": {func(_ *world, r *run) { r.policy = nil }, protocol.Unknown, "", nil},
		"nobody asked for the plan": {
			func(w *world, _ *run) { w.plan.Spec.Plan.Request = nil }, protocol.Yes, "", []string{bob},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asksForIt(w)
			r := &run{Executor: w.Executor, plan: w.plan, policy: w.policy}
			test.world(w, r)
			got, denied := r.authorize(t.Context(), 0)
			if got != test.want || denied != test.denied {
				t.Errorf("got %v %q, want %v %q", got, denied, test.want, test.denied)
			}
			var people []string
			for _, review := range w.reviews {
				if !strings.HasPrefix(review, "self ") {
					people = append(people, review)
				}
			}
			if diff := cmp.Diff(test.reviews, people, inAnyOrder); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
		})
	}
}

// inAnyOrder compares reviews, which are asked for beside each other.
var inAnyOrder = cmpopts.SortSlices(strings.Compare)

// failingMapper cannot say where a kind is served.
type failingMapper struct{ meta.RESTMapper }

func (failingMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errNetwork
}

// unmapped is a client that cannot say so either.
type unmapped struct{ client.Client }

func (unmapped) RESTMapper() meta.RESTMapper { return failingMapper{} }

func TestAStepNeedsTheRightOfItsExecutorAndOfItsRequester(t *testing.T) {
	target := func(apiVersion, kind string) func(*world) {
		return func(w *world) {
			w.plan.Spec.Plan.Targets[0].BaselineTarget = v1alpha1.BaselineTarget{APIVersion: apiVersion, Kind: kind, Name: "web"}
		}
	}
	refused := func(asked string) func(*world) { return func(w *world) { w.deny[asked] = true } }
	unasked := func(asked string) func(*world) {
		return func(w *world) { w.failing("review "+asked, errNetwork) }
	}
	get, update, requester := "self get deployments apps/web in shop", "self update deployments apps/web in shop", "platform update deployments apps/web in shop"
	tests := map[string]struct {
		world   func(*world)
		want    protocol.Answer
		denied  string
		reviews []string
	}{
		"both have it": {func(*world) {}, protocol.Yes, "", []string{get, update, requester}},
		"both have the right to make it again": {
			func(w *world) { w.plan.Spec.Plan.Targets[0].UID = "" }, protocol.Yes, "",
			[]string{get, "self create deployments apps/web in shop", "platform create deployments apps/web in shop"},
		},
		"the executor may not read it": {
			refused("self get deployments"), protocol.No,
			"the executor may not get deployments in namespace shop: bind the ClusterRole plumbline-executor-targets there", []string{get, update, requester},
		},
		"the executor may not write it": {
			refused("self update deployments"), protocol.No,
			"the executor may not update deployments in namespace shop: bind the ClusterRole plumbline-executor-targets there", []string{get, update, requester},
		},
		"the requester may not write it": {
			refused("platform update deployments"), protocol.No,
			"platform, the user of the plan, may not update it", []string{get, update, requester},
		},
		"the executor's right cannot be asked":  {unasked("self update deployments"), protocol.Unknown, "", []string{get, update, requester}},
		"the requester's right cannot be asked": {unasked("platform update deployments"), protocol.Unknown, "", []string{get, update, requester}},
		"its kind is never written":             {target("v1", "Secret"), protocol.No, "a Secret is never written", nil},
		"its kind is not served":                {target("shop.example/v1", "Basket"), protocol.No, "the API server does not serve its kind", nil},
		"its kind is not namespaced":            {target("storage.k8s.io/v1", "StorageClass"), protocol.No, "its kind is not namespaced", nil},
		"where its kind is served cannot be asked": {
			func(w *world) { w.Client = unmapped{w.Client} }, protocol.Unknown, "", nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			r := &run{Executor: w.Executor, plan: w.plan}
			got, denied := r.authorize(t.Context(), 0)
			if got != test.want || denied != test.denied {
				t.Errorf("got %v %q, want %v %q", got, denied, test.want, test.denied)
			}
			if diff := cmp.Diff(test.reviews, w.reviews, inAnyOrder); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
		})
	}
}

// asksForIt has bob ask for the plan.
func asksForIt(w *world) {
	w.plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"}
	w.plan.Spec.Plan.InitiatedBy, w.plan.Spec.Plan.Requester = "bob", "bob"
}

func TestAReviewThatBothAllowsAndDeniesDenies(t *testing.T) {
	for status, want := range map[authorizationv1.SubjectAccessReviewStatus]bool{
		{Allowed: true}: true, {Allowed: true, Denied: true}: false, {Denied: true}: false, {}: false,
	} {
		if got := Allowed(&status); got != want {
			t.Errorf("%+v allows: %t, want %t", status, got, want)
		}
	}
}

func TestTheGroupsOfARequester(t *testing.T) {
	tests := map[string]struct {
		user      string
		confirmed []string
		want      []string
	}{
		"a person's are the confirmed ones, and that of all users": {"alice", []string{"sre", "dev"}, []string{"dev", "sre", "system:authenticated"}},
		"each of them once": {"alice", []string{"sre", "system:authenticated"}, []string{"sre", "system:authenticated"}},
		"a service account has those of service accounts too": {
			"system:serviceaccount:shop:bot", nil, []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.plan.Spec.Plan.Requester, w.plan.Spec.Plan.RequesterGroups = test.user, test.confirmed
			r := &run{Executor: w.Executor, plan: w.plan}
			r.authorize(t.Context(), 0)
			if diff := cmp.Diff(test.want, w.groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}
