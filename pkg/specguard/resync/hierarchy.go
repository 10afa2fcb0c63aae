// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Guard is what one guard says about checks and repairs.
type Guard struct {
	// Name as in Baseline.status.guards, e.g. SpecGuard/web.
	Name string
	// Period between two checks; nil says nothing, 0 says never.
	Period *time.Duration
	// Management is empty when the guard says nothing.
	Management v1alpha1.ManagementPolicy
	// Override is Forbidden when empty or unknown.
	Override v1alpha1.ObjectOverride
}

// GuardOf takes from a guard what counts here.
func GuardOf(name string, spec *v1alpha1.GuardSpec) Guard {
	g := Guard{Name: name, Management: spec.ManagementPolicy, Override: spec.ObjectOverride}
	if spec.ResyncPeriod != nil {
		g.Period = &spec.ResyncPeriod.Duration
	}
	return g
}

// Hierarchy is everything that is said about the checks of one object.
type Hierarchy struct {
	// Annotations of the object.
	Annotations map[string]string
	// GVK of the object; its group and kind find the overrides for a kind.
	GVK canon.GVK
	// Guards that are in force and select the object, in any order. Without a
	// guard the object is neither checked nor repaired.
	Guards []Guard
	// Environment and InstallWide are the GuardDefaults in force, nil where
	// there are none.
	Environment, InstallWide *v1alpha1.GuardDefaults
	// Option is the period given on the command line or by an environment
	// variable; nil when neither was given.
	Option *time.Duration
	// DriftInterval is the period of an object that asks for checks without saying how
	// often; [DriftDetectionPeriod] if zero.
	DriftInterval time.Duration
}

// Settings are what holds for one object.
type Settings struct {
	// Period between two checks; 0 is off.
	Period Answer[time.Duration]
	// Management says whether the object may be repaired.
	Management Answer[v1alpha1.ManagementPolicy]
	// RecheckInterval is when it is looked at again if there was no free slot.
	RecheckInterval Answer[time.Duration]
	// Problems are all that was said and does not count.
	Problems []*InputError
}

// On tells whether scheduled checks are on.
func (s *Settings) On() bool { return s.Period.Value > 0 }

// Resolve finds the settings of an object. The most specific level that says
// something decides, and an explicit 0s is something. Where several voices speak
// at one level the stricter holds: the shortest positive period, never only if
// all of them say so; Unmanaged if any says so.
func Resolve(h Hierarchy) Settings {
	r := resolver{h: &h}
	h.Guards = slices.Clone(h.Guards)
	slices.SortFunc(h.Guards, func(a, b Guard) int { return cmp.Compare(a.Name, b.Name) })
	if len(h.Guards) == 0 {
		return unguarded()
	}
	var s Settings
	s.Period = r.override(decide(r.periods(), shortest))
	s.Management = decide(r.managements(), stricter)
	s.RecheckInterval = decide(r.recheckIntervals(), shortest)
	s.Problems = r.problems
	return s
}

const (
	fromNobody  = "nobody"
	fromNoGuard = "no guard"
)

func unguarded() Settings {
	return Settings{
		Period:          single(fromNoGuard, time.Duration(0)),
		Management:      single(fromNoGuard, v1alpha1.Unmanaged),
		RecheckInterval: single(fromNoGuard, DefaultRecheckInterval),
	}
}

func single[T any](from string, value T) Answer[T] {
	levels := []level[T]{{LevelBuiltIn, []Voice[T]{{from, value}}}}
	return decide(levels, func(v []Voice[T]) Voice[T] { return v[0] })
}

// shortest is the shortest positive period, or 0 if nobody says another.
func shortest(voices []Voice[time.Duration]) Voice[time.Duration] {
	best := voices[0]
	for _, v := range voices[1:] {
		if v.Value > 0 && (best.Value == 0 || v.Value < best.Value) {
			best = v
		}
	}
	return best
}

// stricter is Unmanaged if anybody says so: what is not written is not harmed.
func stricter(voices []Voice[v1alpha1.ManagementPolicy]) Voice[v1alpha1.ManagementPolicy] {
	for _, v := range voices {
		if v.Value == v1alpha1.Unmanaged {
			return v
		}
	}
	return voices[0]
}

// resolver collects what is said, and what of it does not count.
type resolver struct {
	h        *Hierarchy
	problems []*InputError
}

func (r *resolver) problem(p *InputError) { r.problems = append(r.problems, p) }

func (r *resolver) periods() []level[time.Duration] {
	guards := level[time.Duration]{name: LevelGuard}
	for _, g := range r.h.Guards {
		guards.voices = append(guards.voices, r.period(LevelGuard, g.Name, g.Period)...)
	}
	levels := append([]level[time.Duration]{guards}, defaultLevels(r.h, func(l Level, from string, c *v1alpha1.CheckDefaults) []Voice[time.Duration] {
		return r.period(l, from, durationOf(c.ResyncPeriod))
	})...)
	return append(levels,
		level[time.Duration]{LevelOption, r.period(LevelOption, "the assessor's options", r.h.Option)},
		level[time.Duration]{LevelDriftDetection, r.driftDetection()},
		level[time.Duration]{LevelBuiltIn, []Voice[time.Duration]{{fromNobody, 0}}},
	)
}

// period is the voice of a field. The API refuses what is out of bounds; what is
// stored anyway does not count.
func (r *resolver) period(l Level, from string, period *time.Duration) []Voice[time.Duration] {
	if period == nil {
		return nil
	}
	if !validPeriod(*period) {
		r.problem(outOfBounds(*period).at(l, from))
		return nil
	}
	return []Voice[time.Duration]{{from, *period}}
}

func (r *resolver) managements() []level[v1alpha1.ManagementPolicy] {
	guards := level[v1alpha1.ManagementPolicy]{name: LevelGuard}
	for _, g := range r.h.Guards {
		guards.voices = append(guards.voices, r.management(LevelGuard, g.Name, g.Management)...)
	}
	levels := append([]level[v1alpha1.ManagementPolicy]{guards}, defaultLevels(r.h, func(l Level, from string, c *v1alpha1.CheckDefaults) []Voice[v1alpha1.ManagementPolicy] {
		return r.management(l, from, c.ManagementPolicy)
	})...)
	return append(levels, level[v1alpha1.ManagementPolicy]{LevelBuiltIn, []Voice[v1alpha1.ManagementPolicy]{{fromNobody, v1alpha1.Managed}}})
}

// management is the voice of a field. A value that is not known was meant to say
// something; the one that harms nothing is Unmanaged.
func (r *resolver) management(l Level, from string, policy v1alpha1.ManagementPolicy) []Voice[v1alpha1.ManagementPolicy] {
	switch policy {
	case "":
		return nil
	case v1alpha1.Managed, v1alpha1.Unmanaged:
		return []Voice[v1alpha1.ManagementPolicy]{{from, policy}}
	default:
		p := &InputError{Kind: ProblemUnknownValue, Text: quoted(string(policy)), Detail: "neither Managed nor Unmanaged; taken for Unmanaged"}
		r.problem(p.at(l, from))
		return []Voice[v1alpha1.ManagementPolicy]{{from, v1alpha1.Unmanaged}}
	}
}

func (r *resolver) recheckIntervals() []level[time.Duration] {
	levels := defaultLevels(r.h, func(l Level, from string, c *v1alpha1.CheckDefaults) []Voice[time.Duration] {
		return r.recheckInterval(l, from, durationOf(c.RecheckInterval))
	})
	return append(levels, level[time.Duration]{LevelBuiltIn, []Voice[time.Duration]{{fromNobody, DefaultRecheckInterval}}})
}

func (r *resolver) recheckInterval(l Level, from string, interval *time.Duration) []Voice[time.Duration] {
	if interval == nil {
		return nil
	}
	if *interval < MinRecheckInterval || *interval > MaxRecheckInterval {
		p := &InputError{
			Kind: ProblemOutOfBounds, Text: interval.String(),
			Detail: fmt.Sprintf("not from %s to %s", short(MinRecheckInterval), short(MaxRecheckInterval)),
		}
		r.problem(p.at(l, from))
		return nil
	}
	return []Voice[time.Duration]{{from, *interval}}
}

// defaultLevels asks GuardDefaults: first what they say of the kind, then what
// they say of all kinds; at each of them the Environment before the installation.
func defaultLevels[T any](h *Hierarchy, says func(Level, string, *v1alpha1.CheckDefaults) []Voice[T]) []level[T] {
	ofKind := func(l Level, d *v1alpha1.GuardDefaults) level[T] {
		result := level[T]{name: l}
		for _, k := range kindsOf(d, h.GVK) {
			from := fmt.Sprintf("GuardDefaults/%s %s %s", d.Name, k.APIVersion, k.Kind)
			result.voices = append(result.voices, says(l, from, &k.CheckDefaults)...)
		}
		return result
	}
	ofAll := func(l Level, d *v1alpha1.GuardDefaults) level[T] {
		if d == nil {
			return level[T]{name: l}
		}
		return level[T]{l, says(l, "GuardDefaults/"+d.Name, &d.Spec.Defaults)}
	}
	return []level[T]{
		ofKind(LevelEnvironmentKind, h.Environment), ofKind(LevelKind, h.InstallWide),
		ofAll(LevelEnvironmentDefault, h.Environment), ofAll(LevelDefault, h.InstallWide),
	}
}

// kindsOf are the overrides for a kind in any version, as guards select by group
// and kind.
func kindsOf(d *v1alpha1.GuardDefaults, gvk canon.GVK) []v1alpha1.KindDefaults {
	if d == nil {
		return nil
	}
	var kinds []v1alpha1.KindDefaults
	for _, k := range d.Spec.Kinds {
		if of := canon.ParseGVK(k.APIVersion, k.Kind); of.Group == gvk.Group && of.Kind == gvk.Kind {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b v1alpha1.KindDefaults) int { return cmp.Compare(a.APIVersion, b.APIVersion) })
	return kinds
}

func durationOf(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}

// short is a duration as people write it: 3h, not 3h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
