// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

var targets = Targets{"stable": {"stable", 80}, "canary": {"canary", 80}}

// perRequest is the split of routertest without a key.
func perRequest(sequence uint64, canary traffic.Weight) traffic.Split {
	split := routertest.Split(sequence, canary)
	split.Key = traffic.Key{}
	return split
}

func TestTheWeightsOfASplitAreItsBasisPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := traffic.Weight(rapid.IntRange(0, int(traffic.Total)).Draw(t, "canary"))
		want := Weights{{"stable", 80}: int32(traffic.Total - share), {"canary", 80}: int32(share)} //nolint:gosec // at most Total
		if d := cmp.Diff(want, weightsOf(perRequest(1, share), targets)); d != "" {
			t.Errorf("the weights (-want +got):\n%s", d)
		}
	})
}

func TestAVariationThatAnotherOneServesAddsToItsWeight(t *testing.T) {
	split := perRequest(1, 1_000)
	split.Variations[1].ServedBy = "stable"
	if d := cmp.Diff(Weights{{"stable", 80}: 10_000, {"canary", 80}: 0}, weightsOf(split, targets)); d != "" {
		t.Errorf("the weights (-want +got):\n%s", d)
	}
}

func TestASplitThatARouteCannotCarryOutIsRefusedByName(t *testing.T) {
	router := New(Config{Targets: targets})
	for want, change := range map[string]func(*traffic.Split){
		"Sticky":    func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"} },
		"HeaderMap": func(s *traffic.Split) { s.Match = traffic.Match{Header: "x", Values: map[string]string{"a": "canary"}} },
		"Override":  func(s *traffic.Split) { s.Override = "x-variation" },
	} {
		split := perRequest(1, 1_000)
		change(&split)
		var lacks *traffic.IncapableError
		if err := router.Validate(split); !errors.As(err, &lacks) || string(lacks.Lacks[0].Capability) != want {
			t.Errorf("got %v, want the lack of %s", err, want)
		}
	}
}

func TestEachVariationNeedsAServiceOfItsOwn(t *testing.T) {
	for want, given := range map[string]Targets{
		"variation canary has no Service":                         {"stable": {"stable", 80}},
		"variations stable and canary share Service web, port 80": {"stable": {"web", 80}, "canary": {"web", 80}},
	} {
		if err := New(Config{Targets: given}).Validate(perRequest(1, 1_000)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
