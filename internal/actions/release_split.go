// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// PlanSplit returns the percentages of a release with those that are given. The stable variation gets the
// rest, unless it is given too, and each other variation keeps its percentage. An error says why the release
// cannot have these percentages.
func PlanSplit(r *v1alpha1.ABRelease, given map[string]string) (map[string]v1alpha1.Percentage, error) {
	if r.Spec.Rollout != nil {
		return nil, errors.New("it has spec.rollout, so the stages of its runs set the percentages")
	}
	planned := maps.Clone(r.Spec.TrafficSplit.Percentages)
	for _, variation := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(r.Spec.Variations, func(v v1alpha1.Variation) bool { return string(v.Name) == variation }) {
			return nil, fmt.Errorf("it has no variation %q, but %s", variation, strings.Join(namesOf(r), ", "))
		}
		planned[variation] = percentageOf(given[variation])
	}
	stable, rest := string(r.Spec.Stable), traffic.Total
	if _, isGiven := given[stable]; !isGiven {
		delete(planned, stable)
	}
	for _, variation := range slices.Sorted(maps.Keys(planned)) {
		p := planned[variation]
		weight, isPercentage := release.WeightOf(p)
		if !isPercentage || weight > traffic.Total {
			return nil, fmt.Errorf("%q is no percentage from 0 to 100 with at most two decimals", p.String())
		}
		rest -= weight
	}
	_, isGiven := given[stable]
	switch {
	case rest < 0, isGiven && rest != 0:
		return nil, fmt.Errorf("the percentages add up to %s, not to 100", (traffic.Total - rest).Percent())
	case !isGiven:
		planned[stable] = percentageOf(rest.Percent())
	}
	return planned, nil
}

func namesOf(r *v1alpha1.ABRelease) []string {
	names := make([]string, 0, len(r.Spec.Variations))
	for i := range r.Spec.Variations {
		names = append(names, string(r.Spec.Variations[i].Name))
	}
	return names
}

// percentageOf returns a whole number as a number, and any other text as a text.
func percentageOf(text string) v1alpha1.Percentage {
	return v1alpha1.Percentage{IntOrString: intstr.Parse(text)}
}

// RequestSplit writes the percentages of a release without a rollout, which [PlanSplit] computes anew from the
// release that is stored when another writer comes between.
func RequestSplit(ctx context.Context, c client.Client, r *v1alpha1.ABRelease, given map[string]string, dryRun bool) error {
	return Submit(ctx, c, "the release", r, func(now *v1alpha1.ABRelease) (map[string]any, error) {
		planned, err := PlanSplit(now, given)
		if err != nil {
			return nil, err
		}
		return map[string]any{"spec": map[string]any{"trafficSplit": map[string]any{"percentages": planned}}}, nil
	}, patchOptions(dryRun)...)
}
