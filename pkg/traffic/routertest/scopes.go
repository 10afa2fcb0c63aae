// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// scopes are the checks of which requests a split is about, and of when it ends.
func scopes() []check {
	maps := asksWith(func(c traffic.Capabilities) bool { return c.HeaderMap })
	return []check{
		{"pods are those of the selectors that were applied last", asks, testSelectors},
		{"requests of another Service are not divided", asks, testOtherServices},
		{"a release that names another Service leaves the former one", asks, testServiceChanges},
		{"a removed split divides no requests, and other releases go on", asks, testRemoved},
		{"a refused split, or one that goes back, leaves requests as they were", asks, testRefusedChangesNothing},
		{"later changes by the caller of its own split have no effect", maps, testOwnCopy},
	}
}

func testSelectors(b *bench) {
	b.apply(b.split(1, traffic.Total))
	split := b.split(1, traffic.Total)
	if d := cmp.Diff(split.Variations[1], b.ask(nil, nil).Variation); d != "" {
		b.Errorf("the variation (-want +got):\n%s", d)
	}
	split.Sequence, split.Variations[1].Selector = 2, &metav1.LabelSelector{MatchLabels: map[string]string{"version": "next"}}
	b.apply(split)
	if d := cmp.Diff(split.Variations[1], b.ask(nil, nil).Variation); d != "" {
		b.Errorf("the variation with another selector (-want +got):\n%s", d)
	}
}

func (b *bench) undivided(services ...types.NamespacedName) {
	b.Helper()
	for _, service := range services {
		if answer := b.askFor(Request{Service: service}); answer.Divided || answer.Visitor != "" {
			b.Errorf("a request to Service %s goes to %q", service, answer.Variation.Name)
		}
	}
}

func testOtherServices(b *bench) {
	b.undivided(web)
	b.apply(b.split(1, traffic.Total))
	b.goes("a request", nil, "canary")
	b.undivided(types.NamespacedName{Namespace: "shop", Name: "pay"}, types.NamespacedName{Namespace: "bank", Name: "web"})
}

func testServiceChanges(b *bench) {
	b.apply(b.split(1, traffic.Total))
	split := b.split(2, traffic.Total)
	split.Service = "pay"
	b.apply(split)
	b.undivided(web)
	if answer := b.askFor(Request{Service: types.NamespacedName{Namespace: "shop", Name: "pay"}}); answer.Variation.Name != "canary" {
		b.Errorf("a request to the Service that is named now goes to %q", answer.Variation.Name)
	}
}

func testRemoved(b *bench) {
	other := b.split(1, traffic.Total)
	other.Namespace = "bank"
	b.apply(other)
	b.apply(b.split(1, traffic.Total))
	if err := b.router().Remove(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.settle()
	b.undivided(web)
	if answer := b.askFor(Request{Service: types.NamespacedName{Namespace: "bank", Name: "web"}}); answer.Variation.Name != "canary" {
		b.Errorf("a request of the release that was not removed goes to %q", answer.Variation.Name)
	}
}

func testRefusedChangesNothing(b *bench) {
	b.apply(b.split(2, traffic.Total))
	broken := b.split(3, 0)
	broken.Variations = broken.Variations[:1]
	for _, split := range []traffic.Split{broken, b.split(1, 0)} {
		if err := b.router().Apply(b.Context(), split); err == nil {
			b.Errorf("sequence %d is applied", split.Sequence)
		}
		b.settle()
		b.goes("a request", nil, "canary")
	}
}

func testOwnCopy(b *bench) {
	split := b.split(1, traffic.Total)
	split.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}}
	b.apply(split)
	split.Shares[0].Weight, split.Shares[1].Weight, split.Match.Values["beta"] = traffic.Total, 0, "stable"
	b.goes("a request", nil, "canary")
	b.goes("a value that is mapped", map[string]string{"X-Group": "beta"}, "canary")
}
