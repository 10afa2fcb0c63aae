// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// State is what is in force of a release, and what decided it.
type State struct {
	// Generation of the spec that it follows from.
	Generation int64
	// Split is what proxies are told.
	Split traffic.Split
	// Wanted are the shares without clamping.
	Wanted traffic.Shares
	// Clamped variations have no share, because they have no ready endpoints.
	Clamped []traffic.Clamped
	// Prepared is the sequence of the rollback of this state, which replicas carry out when they are
	// ordered to; 0 if none is prepared.
	Prepared uint64
	// ManagedSince is when proxies were first told of the Service; zero if that was not
	// stored.
	ManagedSince time.Time
}

// StateOf reads what the status of a release says; nil if nothing is in force.
func StateOf(r *v1alpha1.ABRelease) *State {
	split, is := SplitOf(r)
	if !is {
		return nil
	}
	s := &State{Generation: r.Status.Effective.Generation, Split: split, Prepared: uint64(max(r.Status.Effective.PreparedSequence, 0))} //nolint:gosec // it is not negative
	if m := r.Status.ManagementStartTime; m != nil {
		s.ManagedSince = m.Time
	}
	for _, share := range split.Shares {
		for _, w := range r.Status.Wanted {
			if string(w.Variation) == share.Variation {
				share.Weight = weight(w.Weight)
			}
		}
		s.Wanted = append(s.Wanted, share)
	}
	for _, c := range r.Status.Clamped {
		clamped := traffic.Clamped{Variation: string(c.Variation), Since: c.StartTime.Time}
		if c.ReadyTime != nil {
			clamped.ReadySince = c.ReadyTime.Time
		}
		s.Clamped = append(s.Clamped, clamped)
	}
	return s
}

// SplitOf is what of a release is in force, and nothing else of it: what replicas
// translate.
func SplitOf(r *v1alpha1.ABRelease) (traffic.Split, bool) {
	f := r.Status.Effective
	if f == nil {
		return traffic.Split{}, false
	}
	s := traffic.Split{
		Namespace: r.Namespace, Name: r.Name, Created: r.CreationTimestamp.Time, Service: f.ServiceName,
		Sequence: uint64(max(f.Sequence, 0)), //nolint:gosec // it is not negative
		Routing: traffic.Routing{Salt: f.Salt, Override: string(f.Override), Key: traffic.Key{
			Kind: kinds[f.Key.Type], Name: f.Key.Name, Domain: string(f.Key.Domain), Secure: f.Key.Secure == v1alpha1.CookieSecureAlways,
		}},
	}
	if f.Match != nil {
		s.Match = matchOf(f.Match)
	}
	for i := range f.Variations {
		v := &f.Variations[i]
		variation := variationOf(r.Namespace, v.Name, v.Workload, v.Selector)
		variation.ServedBy = string(v.ServedBy)
		s.Variations = append(s.Variations, variation)
		s.Shares = append(s.Shares, traffic.Share{Variation: string(v.Name), Weight: weight(v.Weight), Reserved: weight(v.Reserved)})
	}
	return s, true
}

// kinds of keys, as they are stored.
var kinds = map[v1alpha1.SplitKeyType]traffic.KeyKind{
	v1alpha1.SplitKeyPerRequest: traffic.PerRequest, v1alpha1.SplitKeyHeader: traffic.ByHeader,
	v1alpha1.SplitKeyCookie: traffic.ByCookie, v1alpha1.SplitKeyVisitor: traffic.ByVisitor,
}

func variationOf(namespace string, name v1alpha1.VariationName, w *v1alpha1.VariationWorkload, selector *v1alpha1.PodSelector) traffic.Variation {
	v := traffic.Variation{Name: string(name), Selector: selector.LabelSelector()}
	if w != nil {
		v.Workload = &traffic.Workload{Namespace: namespace, Kind: string(w.Kind), Name: w.Name}
	}
	return v
}

func weight(w *int32) traffic.Weight {
	if w == nil {
		return 0
	}
	return traffic.Weight(*w)
}

// Write puts a state into a status; nil takes out what is there. What people see of it
// is written as well.
func (s *State) Write(status *v1alpha1.ABReleaseStatus) {
	status.Effective, status.Wanted, status.Clamped, status.Split, status.ManagementStartTime = nil, nil, nil, "", nil
	if s == nil {
		return
	}
	status.Effective, status.Split = s.effective(), Text(s.Split.Shares)
	if !s.ManagedSince.IsZero() {
		status.ManagementStartTime = new(stored(s.ManagedSince))
	}
	for _, share := range s.Wanted {
		status.Wanted = append(status.Wanted, v1alpha1.WantedWeight{Variation: v1alpha1.VariationName(share.Variation), Weight: new(int32(share.Weight))}) //nolint:gosec // at most 10000
	}
	for _, c := range s.Clamped {
		clamped := v1alpha1.ClampedVariation{Variation: v1alpha1.VariationName(c.Variation), StartTime: stored(c.Since)}
		if !c.ReadySince.IsZero() {
			clamped.ReadyTime = new(stored(c.ReadySince))
		}
		status.Clamped = append(status.Clamped, clamped)
	}
}

// stored is a time as it comes back from the API server.
func stored(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func (s *State) effective() *v1alpha1.EffectiveSplit {
	f := &v1alpha1.EffectiveSplit{
		Sequence: int64(s.Split.Sequence), Generation: s.Generation, //nolint:gosec // it does not reach the sign in a lifetime
		PreparedSequence: int64(s.Prepared), //nolint:gosec // as the sequence
		ServiceName:      s.Split.Service, Salt: s.Split.Salt,
		Key: v1alpha1.SplitKey{Name: s.Split.Key.Name, Domain: v1alpha1.CookieDomain(s.Split.Key.Domain)}, Override: v1alpha1.HeaderName(s.Split.Override),
	}
	if s.Split.Key.Secure {
		f.Key.Secure = v1alpha1.CookieSecureAlways
	}
	for stored, kind := range kinds {
		if kind == s.Split.Key.Kind {
			f.Key.Type = stored
		}
	}
	if m := s.Split.Match; m.Header != "" {
		f.Match = &v1alpha1.HeaderMatch{Header: v1alpha1.HeaderName(m.Header), Values: make(map[string]v1alpha1.VariationName, len(m.Values))}
		for value, variation := range m.Values {
			f.Match.Values[value] = v1alpha1.VariationName(variation)
		}
	}
	for i, share := range s.Split.Shares {
		v := v1alpha1.EffectiveVariation{
			Name: v1alpha1.VariationName(share.Variation), Selector: v1alpha1.PodSelectorOf(s.Split.Variations[i].Selector),
			ServedBy: v1alpha1.VariationName(s.Split.Variations[i].ServedBy),
			Weight:   new(int32(share.Weight)), Reserved: new(int32(share.Reserved)), //nolint:gosec // at most 10000
		}
		if w := s.Split.Variations[i].Workload; w != nil {
			v.Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationWorkloadKind(w.Kind), Name: w.Name}
		}
		f.Variations = append(f.Variations, v)
	}
	return f
}
