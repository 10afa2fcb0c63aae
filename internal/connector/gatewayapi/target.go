// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Target is the Service of one variation. It is in the namespace of the route.
type Target struct {
	Service string
	// Port of the Service, as the backend names it.
	Port int32
}

// Targets have the Service of each variation, by the name of the variation.
type Targets map[string]Target

// Check returns each variation of a split without a Service, and each two variations that share one.
func (t Targets) Check(split traffic.Split) error {
	var errs []error
	taken := map[Target]string{}
	for _, share := range split.Shares {
		target := t[share.Variation]
		switch {
		case target.Service == "":
			errs = append(errs, fmt.Errorf("variation %s has no Service; name its Service in the router of the release", share.Variation))
		case taken[target] != "":
			errs = append(errs, fmt.Errorf("variations %s and %s share Service %s, port %d; give each a Service of its own", taken[target], share.Variation, target.Service, target.Port))
		}
		taken[target] = share.Variation
	}
	return errors.Join(errs...)
}

// Weights are basis points by Service. Their sum is [traffic.Total].
type Weights map[Target]int32

// weightsOf returns the weight of each Service, zeros among them. A variation that another one serves adds to the
// weight of the other one.
func weightsOf(split traffic.Split, targets Targets) Weights {
	servedBy := map[string]string{}
	for _, variation := range split.Variations {
		servedBy[variation.Name] = variation.ServedBy
	}
	weights := Weights{}
	for _, share := range split.Shares {
		weights[targets[share.Variation]] += 0                                                      // a variation that another one serves has a zero
		weights[targets[cmp.Or(servedBy[share.Variation], share.Variation)]] += int32(share.Weight) //nolint:gosec // at most Total
	}
	return weights
}

// allAt returns the weights that send all requests to one variation.
func allAt(variation string, targets Targets) Weights {
	weights := Weights{}
	for name, target := range targets {
		if name == variation {
			weights[target] = int32(traffic.Total)
			continue
		}
		weights[target] = 0
	}
	return weights
}
