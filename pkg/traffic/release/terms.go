// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// basisPoints of a percent.
const basisPoints = traffic.Total / 100

// percentage is a number with at most two decimals, as the schema has it.
var percentage = regexp.MustCompile(`^([0-9]{1,3})(?:[.]([0-9]{1,2}))?$`)

// WeightOf returns a percentage as a weight; false for a text that is none.
func WeightOf(percent v1alpha1.Percentage) (traffic.Weight, bool) {
	parts := percentage.FindStringSubmatch(percent.String())
	if parts == nil {
		return 0, false
	}
	hundredths, err := strconv.Atoi(parts[1] + (parts[2] + "00")[:2])
	return traffic.Weight(hundredths), err == nil
}

// saltOf returns the salt that a release asks for. The default is no uid, because a release that is
// restored from a backup has another one, and each visitor would be drawn anew.
func saltOf(r *v1alpha1.ABRelease) string {
	if r.Spec.Salt != "" {
		return r.Spec.Salt
	}
	sum := sha256.Sum256([]byte(r.Namespace + "/" + r.Name))
	return hex.EncodeToString(sum[:16])
}

// inOrder returns the variations in the order of their ranges: the stable one, then those in force in their
// order, then the others by name. The order in the spec means nothing, since two appliers may change it.
func inOrder(r *v1alpha1.ABRelease) []v1alpha1.Variation {
	var before []string
	if f := r.Status.Effective; f != nil {
		for i := range f.Variations {
			before = append(before, string(f.Variations[i].Name))
		}
	}
	rank := func(v *v1alpha1.Variation) int {
		at := slices.Index(before, string(v.Name))
		switch {
		case v.Name == r.Spec.Stable:
			return -1
		case at >= 0:
			return at
		default:
			return len(before)
		}
	}
	variations := slices.Clone(r.Spec.Variations)
	slices.SortFunc(variations, func(a, b v1alpha1.Variation) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
	})
	return variations
}

// Terms are what a spec asks for.
type Terms struct {
	Generation int64
	// Wishes are the shares, the stable variation's first.
	Wishes []traffic.Wish
	// Split is all of it but the shares and the sequence.
	Split traffic.Split
}

// TermsOf reads a spec. The error says what of it cannot be in force, which the API
// server refuses where it can, and which does nothing where it was stored all the same.
func TermsOf(r *v1alpha1.ABRelease) (Terms, error) {
	terms := Terms{Generation: r.Generation, Split: traffic.Split{
		Namespace: r.Namespace, Name: r.Name, Created: r.CreationTimestamp.Time, Service: r.Spec.ServiceName,
		Routing: traffic.Routing{Salt: saltOf(r), Override: string(r.Spec.TrafficSplit.OverrideHeader)},
	}}
	split := &r.Spec.TrafficSplit
	var err error
	if terms.Split.Key, err = keyOf(split); err != nil {
		return terms, err
	}
	if m := split.HeaderMatch; m != nil {
		terms.Split.Match = matchOf(m)
	}
	variations := inOrder(r)
	if len(variations) > 0 && variations[0].Name != r.Spec.Stable {
		return terms, fmt.Errorf("spec.stable: %q names no variation", r.Spec.Stable)
	}
	for i := range variations {
		v := &variations[i]
		terms.Split.Variations = append(terms.Split.Variations, variationOf(r.Namespace, v.Name, workloadOf(r, v), v.Selector))
		percent, given := split.Percentages[string(v.Name)]
		if !given {
			return terms, fmt.Errorf("spec.trafficSplit.percentages: %s is missing: give it a percentage, which may be 0", v.Name)
		}
		weight, valid := WeightOf(percent)
		if !valid {
			return terms, fmt.Errorf("spec.trafficSplit.percentages: %q of %s is no number with at most two decimals", percent.String(), v.Name)
		}
		wish := traffic.Wish{Variation: string(v.Name), Weight: weight}
		if v.Reserved != nil {
			wish.Reserves, wish.Reserved = true, traffic.Weight(*v.Reserved)*basisPoints
		}
		terms.Wishes = append(terms.Wishes, wish)
	}
	if len(split.Percentages) != len(r.Spec.Variations) {
		return terms, errors.New("spec.trafficSplit.percentages: each key must name a variation: take the others out")
	}
	return terms, terms.check()
}

// workloadOf returns the workload whose pods are a variation: the one that the variation names, or the
// Deployment that the executor makes for it. It is nil for a variation by selector.
func workloadOf(r *v1alpha1.ABRelease, v *v1alpha1.Variation) *v1alpha1.VariationWorkload {
	if v.Clone != nil {
		return &v1alpha1.VariationWorkload{Kind: "Deployment", Name: v1alpha1.CloneName(r.Name, v.Name)}
	}
	return v.Workload
}

// Terms returns what a state has in force as terms, by which a rollout can go back while the spec is
// invalid.
func (s *State) Terms() Terms {
	t := Terms{Generation: s.Generation, Split: s.Split}
	for _, share := range s.Wanted {
		t.Wishes = append(t.Wishes, traffic.Wish{Variation: share.Variation, Weight: share.Weight, Reserved: share.Reserved, Reserves: true})
	}
	return t
}

// Shift returns the terms with an active variation, which comes first, and the weight of the other one. A fresh
// control is left out. It is for terms of two variations; other terms, and those without the active variation,
// stay as they are.
func (t Terms) Shift(active string, weight traffic.Weight) Terms {
	t = t.withoutControl()
	at := slices.IndexFunc(t.Wishes, func(w traffic.Wish) bool { return w.Variation == active })
	if len(t.Wishes) != 2 || at < 0 {
		return t
	}
	other := 1 - at
	t.Wishes = []traffic.Wish{{Variation: active, Weight: traffic.Total - weight}, t.Wishes[other]}
	t.Wishes[1].Weight = weight
	t.Split.Variations = []traffic.Variation{t.Split.Variations[at], t.Split.Variations[other]}
	t.Split.Variations[0].ServedBy, t.Split.Variations[1].ServedBy = "", ""
	return t
}

// Return returns the terms with all requests at the stable variation.
func (t Terms) Return() Terms {
	t.Wishes = slices.Clone(t.Wishes)
	for i := range t.Wishes {
		t.Wishes[i].Weight = 0
	}
	t.Wishes[0].Weight = traffic.Total
	return t
}

// Check returns shifted terms whose first variation serves all the others, for a cohort check.
func (t Terms) Check() Terms {
	t.Split.Variations = slices.Clone(t.Split.Variations)
	for i := range t.Split.Variations {
		if i > 0 {
			t.Split.Variations[i].ServedBy = t.Split.Variations[0].Name
		}
	}
	return t
}

// check demands of the terms what every router does of a split.
func (t Terms) check() error {
	probe := t.Split
	probe.Shares, _ = traffic.Reserve(t.Wishes, nil)
	return probe.Validate()
}

// keyOf is what visitors are known by.
func keyOf(s *v1alpha1.TrafficSplit) (traffic.Key, error) {
	switch s.Type {
	case v1alpha1.TrafficSplitPercentage:
		if s.Sticky != nil {
			return traffic.Key{}, errors.New("spec.trafficSplit.sticky: type Percentage knows no visitors: take it out, or use Sticky")
		}
		return traffic.Key{}, nil
	case v1alpha1.TrafficSplitSticky:
		if s.Sticky == nil {
			return traffic.Key{}, errors.New("spec.trafficSplit.sticky: type Sticky needs a header or a cookie")
		}
	case v1alpha1.TrafficSplitHeader:
		if s.HeaderMatch == nil {
			return traffic.Key{}, errors.New("spec.trafficSplit.headerMatch: type Header needs a header, and which value goes where")
		}
		if s.Sticky == nil {
			return traffic.Key{}, nil
		}
	default:
		return traffic.Key{}, fmt.Errorf("spec.trafficSplit.type: %q is not one of Percentage, Sticky, Header", s.Type)
	}
	switch {
	case (s.Sticky.Header != "") == (s.Sticky.Cookie != ""):
		return traffic.Key{}, errors.New("spec.trafficSplit.sticky: give either a header or a cookie")
	case s.Sticky.Header != "":
		return traffic.Key{Kind: traffic.ByHeader, Name: string(s.Sticky.Header)}, nil
	case s.Sticky.Visitors == v1alpha1.VisitorsIgnore:
		return traffic.Key{Kind: traffic.ByCookie, Name: s.Sticky.Cookie}, nil
	default:
		return traffic.Key{
			Kind: traffic.ByVisitor, Name: s.Sticky.Cookie, Domain: string(s.Sticky.Domain), Secure: s.Sticky.Secure == v1alpha1.CookieSecureAlways,
		}, nil
	}
}

func matchOf(m *v1alpha1.HeaderMatch) traffic.Match {
	match := traffic.Match{Header: string(m.Header), Values: make(map[string]string, len(m.Values))}
	for value, variation := range maps.All(m.Values) {
		match.Values[value] = string(variation)
	}
	return match
}
