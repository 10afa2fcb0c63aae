// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// basisPoints are the weight of all requests.
const basisPoints = 10_000

// Variation is what is wanted and known of one variation. A nil value is not known.
type Variation struct {
	Name v1alpha1.VariationName `json:"name"`
	// IsCanary says whether the run under way brings the requests to the variation.
	IsCanary bool `json:"isCanary,omitempty"`
	// Wanted is the weight that is wanted, and Acknowledged the weight that each proxy has acknowledged,
	// in percent from 0 to 100.
	Wanted       *float64 `json:"wanted,omitempty"`
	Acknowledged *float64 `json:"acknowledged,omitempty"`
	// Observed is the measured part of the answered requests, in percent from 0 to 100.
	Observed *float64 `json:"observed,omitempty"`
	// Ready are the endpoints that can take requests, and Targets all endpoints.
	Ready    *int32 `json:"ready,omitempty"`
	Targets  *int32 `json:"targets,omitempty"`
	InFlight *int64 `json:"inFlight,omitempty"`
	// Health is about the stage under way; nil without a stage.
	Health *v1alpha1.VariationHealth `json:"health,omitempty"`
}

// Proxies says which proxies have the effective split.
type Proxies struct {
	// Noun is that of the routers of the release, as [Screen] has it.
	Noun         string `json:"-"`
	Acknowledged int32  `json:"acknowledged"`
	All          int32  `json:"all"`
	// Sequence of the effective split; 0 when the status has none.
	Sequence  int64                        `json:"sequence,omitempty"`
	Knowledge v1alpha1.AcknowledgmentState `json:"knowledge"`
	// OutOfSync are at most ten proxies that have not acknowledged the split, the longest wait first.
	OutOfSync []v1alpha1.OutOfSyncProxy `json:"outOfSync,omitempty"`
}

func proxiesOf(r *v1alpha1.ABRelease) *Proxies {
	status := &r.Status
	in := status.Acknowledged
	if in == nil {
		return nil
	}
	p := &Proxies{Noun: r.Spec.RouterNoun(), Acknowledged: in.AcknowledgedProxies, All: in.Proxies, Knowledge: in.Knowledge, OutOfSync: in.OutOfSync}
	if status.Effective != nil {
		p.Sequence = status.Effective.Sequence
	}
	return p
}

// variationsOf returns the variations of the spec, the active one first, and the fresh control while it is in the split.
func variationsOf(r *v1alpha1.ABRelease) []Variation {
	var canary v1alpha1.VariationName
	if in := r.Status.Rollout; in != nil && in.Run != nil && !hasEnded(in.Run.State) {
		canary = in.Run.To.Variation
	}
	active := cmp.Or(r.Status.ActiveVariation, r.Spec.Stable)
	all := make([]Variation, 0, len(r.Spec.Variations))
	for i := range r.Spec.Variations {
		all = append(all, variationOf(r, r.Spec.Variations[i].Name, canary))
	}
	if slices.ContainsFunc(r.Status.Wanted, func(w v1alpha1.WantedWeight) bool { return w.Variation == v1alpha1.FreshControl }) {
		all = append(all, variationOf(r, v1alpha1.FreshControl, canary))
	}
	slices.SortStableFunc(all, func(x, y Variation) int { return cmp.Compare(rank(x.Name == active), rank(y.Name == active)) })
	return all
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

func variationOf(r *v1alpha1.ABRelease, name, canary v1alpha1.VariationName) Variation {
	v := Variation{Name: name, IsCanary: name == canary, Wanted: wantedOf(&r.Status, name), Acknowledged: acknowledgedOf(&r.Status, name)}
	for i := range r.Status.Observed {
		if o := &r.Status.Observed[i]; o.Variation == name {
			v.Ready, v.Targets, v.InFlight, v.Observed = &o.ReadyEndpoints, &o.Targets, o.InFlight, shareOf(r.Status.Observed, o)
		}
	}
	if in := r.Status.Rollout; in != nil {
		if a := analysisOf(in); a != nil {
			if i := slices.IndexFunc(a.Variations, func(h v1alpha1.VariationHealth) bool { return h.Variation == name }); i >= 0 {
				v.Health = &a.Variations[i]
			}
		}
	}
	return v
}

func wantedOf(status *v1alpha1.ABReleaseStatus, name v1alpha1.VariationName) *float64 {
	for _, w := range status.Wanted {
		if w.Variation == name {
			return percentage(w.Weight)
		}
	}
	return nil
}

// acknowledgedOf returns the weight in force if each proxy has acknowledged its sequence; nil otherwise,
// as the weights of older sequences are not in the status.
func acknowledgedOf(status *v1alpha1.ABReleaseStatus, name v1alpha1.VariationName) *float64 {
	if status.Effective == nil || status.Acknowledged == nil || status.Acknowledged.Sequence != status.Effective.Sequence {
		return nil
	}
	for i := range status.Effective.Variations {
		if v := &status.Effective.Variations[i]; v.Name == name {
			return percentage(v.Weight)
		}
	}
	return nil
}

func percentage(weight *int32) *float64 {
	if weight == nil {
		return nil
	}
	return new(float64(*weight) * 100 / basisPoints)
}

// shareOf returns the observed share of a variation: by the counts of all variations, or as the status
// has rounded it where a count is missing.
func shareOf(all []v1alpha1.ObservedVariation, of *v1alpha1.ObservedVariation) *float64 {
	var sum int64
	for i := range all {
		if all[i].Requests == nil {
			sum = 0
			break
		}
		sum += *all[i].Requests
	}
	switch {
	case sum > 0:
		return new(float64(*of.Requests) * 100 / float64(sum))
	case of.SharePercent != nil:
		return new(float64(*of.SharePercent))
	}
	return nil
}
