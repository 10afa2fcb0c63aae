// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// MaxControl is the largest weight of a fresh control: the active variation keeps at least as much as either of the
// two others.
const MaxControl = traffic.Total * 33 / 100

// Compare returns shifted terms with a fresh control of a weight, at most [MaxControl], as the third variation. The
// range of the control is the last one and stays where it is, so the control takes visitors from the active variation
// alone, and gives them back to it alone.
func (t Terms) Compare(weight traffic.Weight) Terms {
	if len(t.Wishes) != 2 || len(t.Split.Variations) != 2 || t.Wishes[1].Weight > traffic.Total-MaxControl {
		return t
	}
	weight = min(weight, MaxControl, t.Wishes[0].Weight)
	name := string(v1alpha1.FreshControl)
	t.Wishes = []traffic.Wish{t.Wishes[0], t.Wishes[1], {Variation: name, Weight: weight, Reserves: true, Reserved: MaxControl}}
	t.Wishes[0].Weight -= weight
	t.Wishes[1].Reserves, t.Wishes[1].Reserved = true, traffic.Total-MaxControl
	t.Split.Variations = append(slices.Clone(t.Split.Variations), traffic.Variation{Name: name, Workload: &traffic.Workload{
		Namespace: t.Split.Namespace, Kind: string(v1alpha1.VariationDeployment), Name: v1alpha1.CloneName(t.Split.Name, v1alpha1.FreshControl),
	}})
	return t
}

// withoutControl returns the terms without a fresh control, whose weight the first variation gets.
func (t Terms) withoutControl() Terms {
	at := slices.IndexFunc(t.Wishes, func(w traffic.Wish) bool { return w.Variation == string(v1alpha1.FreshControl) })
	if at < 1 || at >= len(t.Split.Variations) {
		return t
	}
	t.Wishes = slices.Clone(t.Wishes)
	t.Wishes[0].Weight += t.Wishes[at].Weight
	t.Wishes = slices.Delete(t.Wishes, at, at+1)
	t.Split.Variations = slices.Delete(slices.Clone(t.Split.Variations), at, at+1)
	return t
}
