// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// customWorld has an object of a custom kind that CI created.
func customWorld(t *testing.T, apiVersion string, scale ScaleSubresource) *world {
	w := newWorld(t)
	w.gvk, w.scale = canon.ParseGVK(apiVersion, "SandboxPool"), scale
	w.state = NewState("x", v1alpha1.BaselineTarget{APIVersion: apiVersion, Kind: "SandboxPool", Name: "web"})
	spec := testGuardSpec()
	spec.ExpectedWriters = nil
	spec.Resources = []v1alpha1.GuardedResource{{APIVersion: apiVersion, Kind: "SandboxPool"}}
	w.guard("shop", spec, w.now)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, `{"spec":{"replicas":3}}`)
	w.observe(false, false)
	return w
}

// M3 of the guard's review: such a group was taken for a built-in one without /scale.
func TestAForeignScaleOfACustomKindIsNotAuthorizedAsCIs(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion string
		scale      ScaleSubresource
	}{
		"in a group of k8s.io":                          {"sandbox.agents.k8s.io/v1", ScaleServed},
		"in a group of k8s.io, and discovery is silent": {"sandbox.agents.k8s.io/v1", ScaleUnknown},
		"in another group":                              {"example.com/v1", ScaleServed},
		"in another group, and discovery is silent":     {"example.com/v1", ScaleUnknown},
	} {
		for _, relist := range []bool{false, true} {
			w := customWorld(t, tc.apiVersion, tc.scale)
			w.update(write{user: "mallory", sub: "scale", manager: "kubectl", changes: parseChanges(t, w.live.Body, w.gvk, `/spec/replicas = 0`)})
			w.observe(relist, false)
			if w.state.Drift != v1alpha1.StateDrifted || w.state.Authorized.Number != 1 || w.state.Findings[0].Actor.User != "mallory" {
				t.Errorf("%s, relist %t: %s", name, relist, w.report())
			}
		}
	}
}

func TestANumberOfAKindWithoutScaleIsProvenByItsStamp(t *testing.T) {
	w := customWorld(t, "example.com/v1", ScaleNotServed)
	w.update(write{user: user("ci"), manager: "ci", changes: parseChanges(t, w.live.Body, w.gvk, `/spec/replicas = 5`)})
	w.observe(true, false) // only the stamp tells
	if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized.Number != 2 {
		t.Error(w.report())
	}
}

func TestAMaskOfATrustedScaleStaysWhenTheKindLosesScale(t *testing.T) {
	w := customWorld(t, "example.com/v1", ScaleServed)
	w.update(write{user: user("ci"), sub: "scale", manager: "ci", changes: parseChanges(t, w.live.Body, w.gvk, `/spec/replicas = 5`)})
	w.observe(false, false)
	w.scale = ScaleNotServed
	w.observe(true, false)
	if w.state.Drift != v1alpha1.StateInSync || len(w.state.Masks) != 1 {
		t.Error(w.report())
	}
}
