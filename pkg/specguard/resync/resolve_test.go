// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

func hours(n float64) *time.Duration {
	d := time.Duration(n * float64(time.Hour))
	return &d
}

// field is the same for a field of the API.
func field(d *time.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	return &metav1.Duration{Duration: *d}
}

func guard(name string, period *time.Duration, override v1alpha1.ObjectOverride) Guard {
	return Guard{Name: "SpecGuard/" + name, Period: period, Override: override}
}

// defaults has a default and, unless nil, an override for Deployments.
func defaults(name string, period, kind *time.Duration) *v1alpha1.GuardDefaults {
	d := &v1alpha1.GuardDefaults{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Defaults.ResyncPeriod = field(period)
	if kind != nil {
		d.Spec.Kinds = []v1alpha1.KindDefaults{{
			GuardedResource: v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "Deployment"},
			CheckDefaults:   v1alpha1.CheckDefaults{ResyncPeriod: field(kind)},
		}}
	}
	return d
}

func asks(period string) map[string]string {
	return map[string]string{v1alpha1.AnnotationResyncPeriod: period}
}

func TestResolvePeriod(t *testing.T) {
	silent := guard("web", nil, v1alpha1.ObjectOverrideStop)
	tests := map[string]struct {
		h    Hierarchy
		want time.Duration
		from Level
	}{
		"nobody says anything": {h: Hierarchy{Guards: []Guard{silent}}, from: LevelBuiltIn},
		"no guard selects it, whatever else is said": {
			h:    Hierarchy{Annotations: asks("3h"), InstallWide: defaults("all", hours(1), nil), Option: hours(1)},
			from: LevelBuiltIn,
		},
		"a wish for checks has the interval of the installation": {
			h:    Hierarchy{Guards: []Guard{silent}, DriftInterval: 10 * time.Minute, Annotations: map[string]string{AnnotationDriftDetection: "true"}},
			want: 10 * time.Minute, from: LevelDriftDetection,
		},
		"an interval without a wish switches no check on": {h: Hierarchy{Guards: []Guard{silent}, DriftInterval: 10 * time.Minute}, from: LevelBuiltIn},
		"a period of a guard comes before the interval": {
			h:    Hierarchy{Guards: []Guard{guard("web", hours(4), "")}, DriftInterval: 10 * time.Minute, Annotations: map[string]string{AnnotationDriftDetection: "true"}},
			want: 4 * time.Hour, from: LevelGuard,
		},
		"the option": {
			h: Hierarchy{Guards: []Guard{silent}, Option: hours(10)}, want: 10 * time.Hour, from: LevelOption,
		},
		"the install-wide default over the option": {
			h:    Hierarchy{Guards: []Guard{silent}, InstallWide: defaults("all", hours(5), nil), Option: hours(10)},
			want: 5 * time.Hour, from: LevelDefault,
		},
		"the default of the Environment over that of the installation": {
			h:    Hierarchy{Guards: []Guard{silent}, Environment: defaults("prod", hours(2), nil), InstallWide: defaults("all", hours(5), nil)},
			want: 2 * time.Hour, from: LevelEnvironmentDefault,
		},
		"an install-wide kind over the default of the Environment": {
			h:    Hierarchy{Guards: []Guard{silent}, Environment: defaults("prod", hours(2), nil), InstallWide: defaults("all", nil, hours(5))},
			want: 5 * time.Hour, from: LevelKind,
		},
		"the kind of the Environment over that of the installation": {
			h:    Hierarchy{Guards: []Guard{silent}, Environment: defaults("prod", nil, hours(2)), InstallWide: defaults("all", nil, hours(5))},
			want: 2 * time.Hour, from: LevelEnvironmentKind,
		},
		"another kind is not asked": {
			h:    Hierarchy{GVK: canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Guards: []Guard{silent}, InstallWide: defaults("all", hours(7), hours(5))},
			want: 7 * time.Hour, from: LevelDefault,
		},
		"a kind in another version is": {
			h:    Hierarchy{GVK: canon.GVK{Group: "apps", Version: "v2", Kind: "Deployment"}, Guards: []Guard{silent}, InstallWide: defaults("all", hours(7), hours(5))},
			want: 5 * time.Hour, from: LevelKind,
		},
		"a guard over GuardDefaults": {
			h:    Hierarchy{Guards: []Guard{guard("web", hours(4), "")}, Environment: defaults("prod", hours(1), hours(1))},
			want: 4 * time.Hour, from: LevelGuard,
		},
		"of several guards the shortest": {
			h:    Hierarchy{Guards: []Guard{guard("b", hours(4), ""), silent, guard("a", hours(3), ""), guard("c", hours(9), "")}},
			want: 3 * time.Hour, from: LevelGuard,
		},
		"one guard that says never does not silence another": {
			h:    Hierarchy{Guards: []Guard{guard("a", hours(0), ""), guard("b", hours(4), "")}},
			want: 4 * time.Hour, from: LevelGuard,
		},
		"an explicit never of all guards that speak ends the search": {
			h:    Hierarchy{Guards: []Guard{guard("a", hours(0), ""), silent, guard("b", hours(0), "")}, InstallWide: defaults("all", hours(1), hours(1)), Option: hours(1)},
			from: LevelGuard,
		},
		"an explicit never of a kind ends the search": {
			h:    Hierarchy{Guards: []Guard{silent}, InstallWide: defaults("all", hours(1), hours(0))},
			from: LevelKind,
		},
		"an explicit never of the option": {
			h:    Hierarchy{Guards: []Guard{silent}, Option: hours(0), Annotations: map[string]string{AnnotationDriftDetection: "true"}},
			from: LevelOption,
		},
		"a stored period out of bounds says nothing": {
			h:    Hierarchy{Guards: []Guard{guard("web", hours(-1), "")}, Environment: defaults("prod", hours(9000), nil), Option: hours(6)},
			want: 6 * time.Hour, from: LevelOption,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.h.GVK.Kind == "" {
				tc.h.GVK = deployment
			}
			got := Resolve(tc.h)
			if got.Period.Value != tc.want || got.Period.Level != tc.from {
				t.Errorf("period %s by %s, want %s by %s; problems %v", got.Period.Value, got.Period.Level, tc.want, tc.from, got.Problems)
			}
			if got.On() != (tc.want > 0) {
				t.Errorf("on: %t", got.On())
			}
		})
	}
}

func TestTheObjectsAnnotation(t *testing.T) {
	const forbidden, lengthen, stop = v1alpha1.ObjectOverrideForbidden, v1alpha1.ObjectOverrideLengthen, v1alpha1.ObjectOverrideStop
	tests := map[string]struct {
		annotation string
		guards     []Guard
		option     *time.Duration
		want       time.Duration
		problem    ProblemKind // empty when the annotation decides
	}{
		"lengthens where it may":                  {annotation: "6h", guards: []Guard{guard("a", hours(3), lengthen)}, want: 6 * time.Hour},
		"lengthens what the option says":          {annotation: "6h", guards: []Guard{guard("a", nil, lengthen)}, option: hours(3), want: 6 * time.Hour},
		"says the same":                           {annotation: "3h", guards: []Guard{guard("a", hours(3), lengthen)}, want: 3 * time.Hour},
		"stops where it may":                      {annotation: "0s", guards: []Guard{guard("a", hours(3), stop)}},
		"may not stop where it may only lengthen": {annotation: "0s", guards: []Guard{guard("a", hours(3), lengthen)}, want: 3 * time.Hour, problem: ProblemMayNotStop},
		"never shortens":                          {annotation: "1h", guards: []Guard{guard("a", hours(3), stop)}, want: 3 * time.Hour, problem: ProblemMayNotShorten},
		"never starts what was switched off":      {annotation: "1h", guards: []Guard{guard("a", hours(0), stop)}, problem: ProblemMayNotShorten},
		"asks for checks where nobody says when":  {annotation: "1h", guards: []Guard{guard("a", nil, lengthen)}, want: time.Hour},
		"is forbidden by default":                 {annotation: "6h", guards: []Guard{guard("a", hours(3), "")}, want: 3 * time.Hour, problem: ProblemOverrideForbidden},
		"is forbidden":                            {annotation: "6h", guards: []Guard{guard("a", hours(3), forbidden)}, want: 3 * time.Hour, problem: ProblemOverrideForbidden},
		"needs every guard":                       {annotation: "0s", guards: []Guard{guard("a", hours(3), stop), guard("b", nil, lengthen)}, want: 3 * time.Hour, problem: ProblemMayNotStop},
		"is forbidden by one of several guards":   {annotation: "6h", guards: []Guard{guard("a", hours(3), stop), guard("b", nil, forbidden)}, want: 3 * time.Hour, problem: ProblemOverrideForbidden},
		"is forbidden by what is not known":       {annotation: "6h", guards: []Guard{guard("a", hours(3), "Anything")}, want: 3 * time.Hour, problem: ProblemOverrideForbidden},
		"that does not parse changes nothing":     {annotation: "never", guards: []Guard{guard("a", hours(3), stop)}, want: 3 * time.Hour, problem: ProblemNotAPeriod},
		"that is empty changes nothing":           {annotation: "", guards: []Guard{guard("a", hours(3), stop)}, want: 3 * time.Hour, problem: ProblemNotAPeriod},
		"that is out of bounds changes nothing":   {annotation: "9000h", guards: []Guard{guard("a", hours(3), stop)}, want: 3 * time.Hour, problem: ProblemOutOfBounds},
		"that does not parse is told even where it is forbidden": {
			annotation: "0", guards: []Guard{guard("a", hours(3), forbidden)}, want: 3 * time.Hour, problem: ProblemNotAPeriod,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Resolve(Hierarchy{GVK: deployment, Annotations: asks(tc.annotation), Guards: tc.guards, Option: tc.option})
			if got.Period.Value != tc.want {
				t.Errorf("period %s, want %s", got.Period.Value, tc.want)
			}
			var kinds []ProblemKind
			for _, p := range got.Problems {
				kinds = append(kinds, p.Kind)
				if p.Level != LevelObject || p.From != v1alpha1.AnnotationResyncPeriod {
					t.Errorf("the problem is of %s at %s", p.From, p.Level)
				}
			}
			var want []ProblemKind
			if tc.problem != "" {
				want = []ProblemKind{tc.problem}
			}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if decides := got.Period.Level == LevelObject; decides != (tc.problem == "") {
				t.Errorf("the annotation decides: %t", decides)
			}
		})
	}
}

func TestTheWishForDriftDetection(t *testing.T) {
	tests := map[string]struct {
		wish    string
		h       Hierarchy
		want    time.Duration
		problem []ProblemKind
	}{
		"without a period means 3 hours":            {wish: "true", want: 3 * time.Hour},
		"counts although overrides are forbidden":   {wish: "true", h: Hierarchy{Guards: []Guard{guard("a", nil, v1alpha1.ObjectOverrideForbidden)}}, want: 3 * time.Hour},
		"leaves a period as it is":                  {wish: "true", h: Hierarchy{Guards: []Guard{guard("a", hours(7), "")}}, want: 7 * time.Hour},
		"leaves an explicit never as it is":         {wish: "true", h: Hierarchy{Guards: []Guard{guard("a", hours(0), "")}}},
		"false is no wish":                          {wish: "false"},
		"false switches nothing off":                {wish: "false", h: Hierarchy{Guards: []Guard{guard("a", hours(7), "")}}, want: 7 * time.Hour},
		"anything else is a problem and no wish":    {wish: "yes", problem: []ProblemKind{ProblemNotABoolean}},
		"with the object's own period means that":   {wish: "true", h: Hierarchy{Annotations: asks("1h"), Guards: []Guard{guard("a", nil, v1alpha1.ObjectOverrideLengthen)}}, want: time.Hour},
		"with a period that is forbidden means 3 h": {wish: "true", h: Hierarchy{Annotations: asks("1h")}, want: 3 * time.Hour, problem: []ProblemKind{ProblemOverrideForbidden}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := tc.h
			if h.Guards == nil {
				h.Guards = []Guard{guard("a", nil, "")}
			}
			if h.Annotations == nil {
				h.Annotations = map[string]string{}
			}
			h.Annotations[AnnotationDriftDetection] = tc.wish
			got := Resolve(h)
			var kinds []ProblemKind
			for _, p := range got.Problems {
				kinds = append(kinds, p.Kind)
			}
			if diff := cmp.Diff(tc.problem, kinds); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if got.Period.Value != tc.want {
				t.Errorf("period %s, want %s", got.Period.Value, tc.want)
			}
		})
	}
}

func TestTheTrailSaysWhatBecameOfEachLevel(t *testing.T) {
	got := Resolve(Hierarchy{
		GVK: deployment, Annotations: asks("1h"),
		Guards:      []Guard{guard("web", hours(6), v1alpha1.ObjectOverrideStop), guard("all", hours(3), v1alpha1.ObjectOverrideStop)},
		Environment: defaults("prod", hours(12), nil),
		InstallWide: defaults("platform", nil, hours(0.5)),
	})
	var lines []string
	for _, step := range got.Period.Trail {
		lines = append(lines, step.String())
	}
	want := []string{
		"Object: refused; plumbline.dev/resync-period says 1h; an annotation makes checks rarer, never more frequent; 3h of SpecGuard/all stays",
		"Guard: decides; SpecGuard/all says 3h, SpecGuard/web says 6h",
		"EnvironmentKind: silent",
		"Kind: overruled; GuardDefaults/platform apps/v1 Deployment says 30m",
		"EnvironmentDefault: overruled; GuardDefaults/prod says 12h",
		"Default: silent",
		"Option: silent",
		"DriftDetection: silent",
		"BuiltIn: overruled; nobody says 0s",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	if got.Period.From != "SpecGuard/all" {
		t.Errorf("decided by %s", got.Period.From)
	}
}

func TestResolveManagement(t *testing.T) {
	says := func(p v1alpha1.ManagementPolicy) Guard { return Guard{Name: "SpecGuard/" + string(p), Management: p} }
	everyKind := &v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{Defaults: v1alpha1.CheckDefaults{ManagementPolicy: v1alpha1.Unmanaged}}}
	oneKind := everyKind.DeepCopy()
	oneKind.Spec.Kinds = []v1alpha1.KindDefaults{{
		GuardedResource: v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "Deployment"},
		CheckDefaults:   v1alpha1.CheckDefaults{ManagementPolicy: v1alpha1.Managed},
	}}
	tests := map[string]struct {
		h       Hierarchy
		want    v1alpha1.ManagementPolicy
		from    Level
		problem bool
	}{
		"nobody says anything":              {h: Hierarchy{Guards: []Guard{says("")}}, want: v1alpha1.Managed, from: LevelBuiltIn},
		"no guard":                          {want: v1alpha1.Unmanaged, from: LevelBuiltIn},
		"the default":                       {h: Hierarchy{Guards: []Guard{says("")}, InstallWide: everyKind}, want: v1alpha1.Unmanaged, from: LevelDefault},
		"the kind over the default":         {h: Hierarchy{Guards: []Guard{says("")}, InstallWide: oneKind}, want: v1alpha1.Managed, from: LevelKind},
		"a guard over GuardDefaults":        {h: Hierarchy{Guards: []Guard{says(v1alpha1.Managed)}, InstallWide: everyKind}, want: v1alpha1.Managed, from: LevelGuard},
		"of two guards the one that spares": {h: Hierarchy{Guards: []Guard{says(v1alpha1.Managed), says(v1alpha1.Unmanaged)}}, want: v1alpha1.Unmanaged, from: LevelGuard},
		"what is not known spares": {
			h: Hierarchy{Guards: []Guard{says(v1alpha1.Managed), says("Sometimes")}}, want: v1alpha1.Unmanaged, from: LevelGuard, problem: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.h.GVK = deployment
			got := Resolve(tc.h)
			if got.Management.Value != tc.want || got.Management.Level != tc.from {
				t.Errorf("%s by %s, want %s by %s", got.Management.Value, got.Management.Level, tc.want, tc.from)
			}
			if (len(got.Problems) > 0) != tc.problem {
				t.Errorf("problems: %v", got.Problems)
			}
		})
	}
}

func TestResolveRecheckInterval(t *testing.T) {
	with := func(d time.Duration) *v1alpha1.GuardDefaults {
		return &v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{Defaults: v1alpha1.CheckDefaults{RecheckInterval: &metav1.Duration{Duration: d}}}}
	}
	tests := map[string]struct {
		environment, installWide *v1alpha1.GuardDefaults
		want                     time.Duration
		problem                  bool
	}{
		"5 minutes if nobody says another": {want: 5 * time.Minute},
		"the installation's":               {installWide: with(time.Minute), want: time.Minute},
		"the Environment's over it":        {environment: with(time.Hour), installWide: with(time.Minute), want: time.Hour},
		"a second is just long enough":     {installWide: with(time.Second), want: time.Second},
		"less is not":                      {installWide: with(time.Second - 1), want: 5 * time.Minute, problem: true},
		"a day is just short enough":       {installWide: with(24 * time.Hour), want: 24 * time.Hour},
		"more is not":                      {installWide: with(24*time.Hour + 1), want: 5 * time.Minute, problem: true},
		"never is no interval":             {installWide: with(0), want: 5 * time.Minute, problem: true},
		"a week is too long":               {environment: with(168 * time.Hour), installWide: with(time.Minute), want: time.Minute, problem: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Resolve(Hierarchy{GVK: deployment, Guards: []Guard{guard("a", nil, "")}, Environment: tc.environment, InstallWide: tc.installWide})
			if got.RecheckInterval.Value != tc.want || (len(got.Problems) > 0) != tc.problem {
				t.Errorf("%s, problems %v; want %s", got.RecheckInterval.Value, got.Problems, tc.want)
			}
		})
	}
}

func TestGuardOfTakesWhatAGuardSays(t *testing.T) {
	spec := &v1alpha1.GuardSpec{ResyncPeriod: field(hours(2)), ManagementPolicy: v1alpha1.Unmanaged, ObjectOverride: v1alpha1.ObjectOverrideStop}
	want := Guard{Name: "SpecGuard/web", Period: hours(2), Management: v1alpha1.Unmanaged, Override: v1alpha1.ObjectOverrideStop}
	if diff := cmp.Diff(want, GuardOf("SpecGuard/web", spec)); diff != "" {
		t.Errorf("guard (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Guard{Name: "x"}, GuardOf("x", &v1alpha1.GuardSpec{})); diff != "" {
		t.Errorf("a guard that says nothing (-want +got):\n%s", diff)
	}
}

// TestBadInputNeverSwitchesOff: whatever the annotations say, an object that is
// checked stays checked, unless they say 0s and every guard lets them.
func TestBadInputNeverSwitchesOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9.+-]{0,4}(h|m|s|ms)?`)).Draw(t, "annotation")
		got := Resolve(Hierarchy{
			GVK: deployment, Guards: []Guard{guard("a", hours(3), v1alpha1.ObjectOverrideStop)},
			Annotations: map[string]string{v1alpha1.AnnotationResyncPeriod: text, AnnotationDriftDetection: rapid.String().Draw(t, "wish")},
		})
		if period, err := ParsePeriod(text); got.On() || err == nil && period == 0 {
			return
		}
		t.Fatalf("%q switched checks off", text)
	})
}

func TestAFieldThatIsOutOfBoundsIsToldWithItsPlace(t *testing.T) {
	short := time.Second - 1
	got := Resolve(Hierarchy{GVK: deployment, Guards: []Guard{guard("a", &short, "")}})
	if got.On() || len(got.Problems) != 1 {
		t.Fatalf("checks are on: %t; problems %v", got.On(), got.Problems)
	}
	if p := got.Problems[0]; p.Kind != ProblemOutOfBounds || p.Level != LevelGuard || p.From != "SpecGuard/a" {
		t.Errorf("the problem is %+v", p)
	}
}

func TestAProblemNamesItsPlaceIfThatIsKnown(t *testing.T) {
	p := &InputError{Text: `"x"`, Detail: "not a period"}
	if got, want := p.Error(), `"x": not a period`; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
	if got, want := p.at(LevelGuard, "SpecGuard/a").Error(), `SpecGuard/a: "x": not a period`; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}
