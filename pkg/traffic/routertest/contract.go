// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Stand is what the contract is tested with.
type Stand interface {
	// Router returns that of a release: the same one for the same release.
	Router(release types.NamespacedName) traffic.Router
}

// Asker is a stand whose requests go by what its routers were told.
type Asker interface {
	Stand
	Ask(request Request) (Answer, error)
}

// Contract runs what every router must pass; begin gives a stand in which nothing is divided each time.
// Of one that is an Asker it also asks where requests go ([Routing]).
func Contract(t *testing.T, begin func(*testing.T) Stand) {
	for name, test := range map[string]func(*testing.T, Stand){
		"a split that is not whole is refused":                  testNotWhole,
		"a sequence may come twice and never goes back":         testSequences,
		"no split is effective before the first one is applied": testNothingApplied,
		"a removed split is forgotten":                          testForgotten,
	} {
		t.Run(name, func(t *testing.T) { test(t, begin(t)) })
	}
	if _, asks := begin(t).(Asker); asks {
		Routing(t, func(t *testing.T) Asker { return begin(t).(Asker) }) //nolint:forcetypeassert // as the one before
	}
}

var (
	release = types.NamespacedName{Namespace: "shop", Name: "autumn"}
	web     = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// Split returns a split of Service shop/web between pods with the labels version=stable and
// version=canary, of which the canary gets so much. Users are known by the header x-user.
func Split(sequence uint64, canary traffic.Weight) traffic.Split {
	selected := func(version string) traffic.Variation {
		return traffic.Variation{Name: version, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": version}}}
	}
	return traffic.Split{
		Namespace: release.Namespace, Name: release.Name, Service: web.Name, Sequence: sequence,
		Variations: []traffic.Variation{selected("stable"), selected("canary")},
		Routing: traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
			Key:    traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, Salt: "salt",
		},
	}
}

func apply(t *testing.T, stand Stand, split traffic.Split) {
	t.Helper()
	router := stand.Router(types.NamespacedName{Namespace: split.Namespace, Name: split.Name})
	if err := router.Validate(split); err != nil {
		t.Fatalf("a split that is valid is refused: %v", err)
	}
	if err := router.Apply(t.Context(), split); err != nil {
		t.Fatal(err)
	}
}

func testNotWhole(t *testing.T, stand Stand) {
	router := stand.Router(release)
	for name, change := range map[string]func(*traffic.Split){
		"the weights are not the whole": func(s *traffic.Split) { s.Shares[0].Weight-- },
		"a variation has no pods":       func(s *traffic.Split) { s.Variations[1].Selector = nil },
		"a weight is of no variation":   func(s *traffic.Split) { s.Variations = s.Variations[:1] },
		"a header's value is of no variation either": func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "b"}}
		},
		"no Service is named": func(s *traffic.Split) { s.Service = "" },
	} {
		split := Split(1, 1_000)
		change(&split)
		if err := router.Validate(split); err == nil {
			t.Errorf("where %s the split is valid", name)
		}
		if err := router.Apply(t.Context(), split); err == nil {
			t.Errorf("where %s the split is applied", name)
		}
	}
}

func testSequences(t *testing.T, stand Stand) {
	router := stand.Router(release)
	apply(t, stand, Split(7, 1_000))
	apply(t, stand, Split(7, 1_000))
	for _, sequence := range []uint64{0, 6} {
		var later *traffic.LaterError
		if err := router.Apply(t.Context(), Split(sequence, 2_000)); !errors.As(err, &later) || later.Sequence != 7 {
			t.Errorf("sequence %d after 7: got %v, want a LaterError of 7", sequence, err)
		}
	}
	apply(t, stand, Split(9, 3_000))
}

func testNothingApplied(t *testing.T, stand Stand) {
	router := stand.Router(release)
	if err := router.Remove(t.Context()); err != nil {
		t.Errorf("removing a split that was never applied: %v", err)
	}
	nothingInForce(t, router)
}

func testForgotten(t *testing.T, stand Stand) {
	router := stand.Router(release)
	apply(t, stand, Split(7, 1_000))
	for range 2 {
		if err := router.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		nothingInForce(t, router)
	}
	apply(t, stand, Split(1, 1_000)) // of a release that was made anew under the name
}

func nothingInForce(t *testing.T, router traffic.Router) {
	t.Helper()
	seen, err := router.Observe(t.Context())
	if err == nil && (seen.Sequence != 0 || seen.Knowledge == traffic.Proven || seen.Knowledge == traffic.Accepted) {
		t.Errorf("no split is applied, and effective is %+v", seen)
	}
}

// name of a user; all have another one.
func name(i int) string { return fmt.Sprint("user-", i) }
