// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Release is an ABRelease.
type Release struct {
	Object
	// TenantID is the uid of the namespace.
	TenantID      string      `json:"tenantId,omitempty" readOnly:"true"`
	EnvironmentID string      `json:"environmentId,omitempty"`
	Variations    []Variation `json:"variations"`
	// ActiveVariation is the letter of the variation that gets the requests when no run is on.
	ActiveVariation string                  `json:"activeVariation,omitempty" readOnly:"true"`
	TrafficSplit    TrafficSplit            `json:"trafficSplit"`
	RolloutStrategy *Strategy               `json:"rolloutStrategy,omitempty"`
	Status          Word[v1alpha1.RunState] `json:"status" readOnly:"true"`
	CompletedAt     *time.Time              `json:"completedAt" readOnly:"true"`
	CreatedBy       *string                 `json:"createdBy" readOnly:"true"`
	ServiceName     string                  `json:"serviceName,omitempty"`
	Salt            string                  `json:"salt,omitempty"`
	Routers         []ReleaseRouter         `json:"routers,omitempty" doc:"The routers that carry out the split. Without any, the mesh does."`
	Acknowledgment  *Acknowledgment         `json:"acknowledgment,omitempty"`
	Rollout         *Rollout                `json:"rollout,omitempty"`
	Stages          []Stage                 `json:"stages" readOnly:"true"`
	Run             int64                   `json:"run,omitempty" readOnly:"true"`
	Waiting         *Wait                   `json:"waiting,omitempty" readOnly:"true"`
	Message         string                  `json:"message,omitempty" readOnly:"true"`
	Acknowledged    *Acknowledged           `json:"acknowledged,omitempty" readOnly:"true"`
	Conditions      []Condition             `json:"conditions,omitempty" readOnly:"true"`
}

// Wait is the reason why a run waits.
type Wait struct {
	Reason     string     `json:"reason"`
	StartedAt  time.Time  `json:"startedAt" kind:"StartTime"`
	DeadlineAt *time.Time `json:"deadlineAt,omitempty" kind:"DeadlineTime"`
	Message    string     `json:"message,omitempty"`
}

// Acknowledged counts the proxies that have the effective split.
type Acknowledged struct {
	Knowledge           Word[v1alpha1.AcknowledgmentState] `json:"knowledge"`
	Sequence            int64                              `json:"sequence"`
	Proxies             int32                              `json:"proxies"`
	AcknowledgedProxies int32                              `json:"acknowledgedProxies"`
	OutOfSync           []OutOfSyncProxy                   `json:"outOfSync,omitempty"`
}

// OutOfSyncProxy is a proxy that has not acknowledged the effective split.
type OutOfSyncProxy struct {
	Name string `json:"name"`
	Why  string `json:"why,omitempty"`
}

// ordered returns the variations in the order of their letters: the stable one is A, and the others
// follow as the spec has them.
func ordered(spec *v1alpha1.ABReleaseSpec) []v1alpha1.Variation {
	variations := slices.Clone(spec.Variations)
	slices.SortStableFunc(variations, func(x, y v1alpha1.Variation) int {
		switch {
		case x.Name == y.Name:
			return 0
		case x.Name == spec.Stable:
			return -1
		case y.Name == spec.Stable:
			return 1
		}
		return 0
	})
	return variations
}

// letters has the letter of each variation of a release.
type letters map[v1alpha1.VariationName]string

func lettersOf(spec *v1alpha1.ABReleaseSpec) letters {
	of := letters{}
	for i, v := range ordered(spec) {
		of[v.Name] = string(rune('A' + i))
	}
	return of
}

// VariationOf returns the name of the variation with a letter; false if the release has none.
func VariationOf(spec *v1alpha1.ABReleaseSpec, letter string) (v1alpha1.VariationName, bool) {
	for name, its := range lettersOf(spec) {
		if its == letter {
			return name, true
		}
	}
	return "", false
}

// ReleaseOf shows a release.
func ReleaseOf(r *v1alpha1.ABRelease, uids *Uids) Release {
	letters := lettersOf(&r.Spec)
	out := Release{
		Object: objectOf(&r.ObjectMeta), TenantID: uids.Namespaces[r.Namespace], EnvironmentID: uids.Environments[uids.EnvironmentOf[r.Namespace]],
		Variations: variationsOf(r, letters), ActiveVariation: letters[activeOf(r)], TrafficSplit: trafficSplitOf(&r.Spec, letters),
		Status: ReleaseStatusOf(r), ServiceName: r.Spec.ServiceName, Salt: r.Spec.Salt, Routers: routersOf(r.Spec.Routers, letters), Stages: stagesOf(r),
		Conditions: conditionsOf(r.Status.Conditions),
	}
	if a := r.Spec.Acknowledgment; a != nil {
		out.Acknowledgment = &Acknowledgment{}
		show(out.Acknowledgment, a)
	}
	out.showRollout(r)
	if a := r.Status.Acknowledged; a != nil {
		out.Acknowledged = &Acknowledged{}
		show(out.Acknowledged, a)
	}
	return out
}

// ReleaseStatusOf returns how far the run of a release is. A release without a rollout is running from
// when proxies are told its percentages.
func ReleaseStatusOf(r *v1alpha1.ABRelease) Word[v1alpha1.RunState] {
	switch {
	case r.Spec.Rollout == nil && r.Status.Effective != nil:
		return Spell(v1alpha1.RunState("Running"))
	case r.Spec.Rollout != nil && r.Status.Rollout != nil && r.Status.Rollout.Run != nil:
		return Spell(r.Status.Rollout.Run.State)
	}
	return Spell(v1alpha1.RunState("Created"))
}

func (r *Release) showRollout(of *v1alpha1.ABRelease) {
	spec := of.Spec.Rollout
	if spec == nil {
		return
	}
	r.Rollout = &Rollout{}
	show(r.Rollout, spec)
	r.CreatedBy = textOf(spec.RequestedBy)
	if spec.Strategy != nil {
		strategy := strategyOf(spec.Strategy)
		r.RolloutStrategy = &strategy
	} else if spec.StrategyName != "" {
		r.RolloutStrategy = &Strategy{Name: spec.StrategyName, Stages: []StrategyStage{}}
	}
	status := of.Status.Rollout
	if status == nil || status.Run == nil {
		return
	}
	r.Run, r.CompletedAt, r.Message = status.Run.Number, timeOf(status.Run.CompletionTime), status.Run.Message
	if status.Waiting != nil {
		r.Waiting = &Wait{}
		show(r.Waiting, status.Waiting)
	}
}

func activeOf(r *v1alpha1.ABRelease) v1alpha1.VariationName {
	if r.Status.ActiveVariation != "" {
		return r.Status.ActiveVariation
	}
	return r.Spec.Stable
}

// Spec returns the spec that the release describes. The first variation is the stable one.
func (r *Release) Spec() (v1alpha1.ABReleaseSpec, error) {
	spec := v1alpha1.ABReleaseSpec{ServiceName: r.ServiceName, Salt: r.Salt}
	names := map[string]v1alpha1.VariationName{}
	for i := range r.Variations {
		v := &r.Variations[i]
		if want := string(rune('A' + i)); v.Name != want {
			return spec, fmt.Errorf("variations[%d].name: the variation is %q, and has the name %q", i, want, v.Name)
		}
		variation, err := v.spec()
		if err != nil {
			return spec, fmt.Errorf("variations[%d]: %w", i, err)
		}
		names[v.Name] = variation.Name
		spec.Variations = append(spec.Variations, variation)
	}
	if len(spec.Variations) > 0 {
		spec.Stable = spec.Variations[0].Name
	}
	split, err := r.TrafficSplit.spec(names)
	if err != nil {
		return spec, fmt.Errorf("trafficSplit.%w", err)
	}
	spec.TrafficSplit = split
	if spec.Routers, err = specRouters(r.Routers, names); err != nil {
		return spec, err
	}
	return spec, r.takeRest(&spec)
}

func (r *Release) takeRest(spec *v1alpha1.ABReleaseSpec) error {
	if r.Acknowledgment != nil {
		spec.Acknowledgment = &v1alpha1.Acknowledgment{}
		if err := take(spec.Acknowledgment, r.Acknowledgment); err != nil {
			return err
		}
	}
	if r.Rollout == nil && r.RolloutStrategy == nil {
		return nil
	}
	spec.Rollout = &v1alpha1.Rollout{}
	if r.Rollout != nil {
		if err := take(spec.Rollout, r.Rollout); err != nil {
			return err
		}
	}
	strategy := r.RolloutStrategy
	if strategy == nil {
		return nil
	}
	if len(strategy.Stages) == 0 {
		spec.Rollout.StrategyName = strategy.Name
		return nil
	}
	own, err := strategy.Spec()
	spec.Rollout.Strategy = &own
	return err
}

// variationName returns the name that the kind has for a letter.
func variationName(letter string) v1alpha1.VariationName {
	return v1alpha1.VariationName(strings.ToLower(letter))
}
