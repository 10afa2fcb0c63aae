// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

func with(d v1alpha1.GuardDefaults, change func(*v1alpha1.GuardDefaultsSpec)) v1alpha1.GuardDefaults {
	d.UID, d.Generation = types.UID(d.Name), 1
	change(&d.Spec)
	return d
}

func every(period time.Duration) func(*v1alpha1.GuardDefaultsSpec) {
	return func(s *v1alpha1.GuardDefaultsSpec) { s.Defaults.ResyncPeriod = &metav1.Duration{Duration: period} }
}

func TestWhatIsInForceDecides(t *testing.T) {
	f := NewActive([]v1alpha1.GuardDefaults{
		with(defaults("wide", "", time.Hour), every(6*time.Hour)),
		with(defaults("late", "", 0), every(time.Minute)),
		with(defaults("prod", "prod", 0), func(s *v1alpha1.GuardDefaultsSpec) {
			every(2 * time.Hour)(s)
			s.DriftThreshold = "25%"
			s.Defaults.ManagementPolicy = v1alpha1.Unmanaged
		}),
		with(defaults("lost", "gone", 0), every(time.Second)),
	}, sets.New("prod", "dev"))
	type answer struct {
		Period     time.Duration
		Management v1alpha1.ManagementPolicy
		Threshold  resync.Percent
	}
	h := resync.Hierarchy{GVK: canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, Guards: []resync.Guard{{Name: "SpecGuard/web"}}}
	for environment, want := range map[string]answer{
		"":     {6 * time.Hour, v1alpha1.Managed, 33},
		"prod": {2 * time.Hour, v1alpha1.Unmanaged, 25},
		"dev":  {6 * time.Hour, v1alpha1.Managed, 33},
		"gone": {6 * time.Hour, v1alpha1.Managed, 33},
	} {
		s := f.Resolve(environment, h)
		got := answer{s.Period.Value, s.Management.Value, f.Threshold(environment, 33)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("environment %q (-want +got):\n%s", environment, diff)
		}
	}
	if diff := cmp.Diff([]string{"prod"}, f.Environments()); diff != "" {
		t.Errorf("environments (-want +got):\n%s", diff)
	}
}

func TestNothingInForceSaysNothing(t *testing.T) {
	var f *Active
	threshold := f.Threshold("prod", 33)
	if f.InstallWide() != nil || f.Environment("prod") != nil || len(f.Environments()) != 0 || threshold != 33 {
		t.Errorf("nothing says %d", threshold)
	}
	s := f.Resolve("", resync.Hierarchy{Guards: []resync.Guard{{Name: "SpecGuard/web"}}})
	if s.On() || s.Management.Value != v1alpha1.Managed {
		t.Errorf("settings are %+v", s)
	}
}

func TestWhoseThresholdHolds(t *testing.T) {
	said := func(name, environment, threshold string) v1alpha1.GuardDefaults {
		return with(defaults(name, environment, 0), func(s *v1alpha1.GuardDefaultsSpec) { s.DriftThreshold = threshold })
	}
	for name, tc := range map[string]struct {
		defaults    []v1alpha1.GuardDefaults
		environment string
		want        resync.Percent
	}{
		"the installation says a percentage":                          {[]v1alpha1.GuardDefaults{said("wide", "", "20%")}, "", 20},
		"the installation says a fraction":                            {[]v1alpha1.GuardDefaults{said("wide", "", "0.2")}, "", 20},
		"the installation is silent":                                  {[]v1alpha1.GuardDefaults{said("wide", "", "")}, "", 33},
		"the installation says what is none":                          {[]v1alpha1.GuardDefaults{said("wide", "", "lots")}, "", 33},
		"the Environment comes before the installation":               {[]v1alpha1.GuardDefaults{said("wide", "", "20%"), said("prod", "prod", "5%")}, "prod", 5},
		"a silent Environment has the threshold of the installation":  {[]v1alpha1.GuardDefaults{said("wide", "", "20%"), said("prod", "prod", "")}, "prod", 20},
		"the Environment says nothing about the installation":         {[]v1alpha1.GuardDefaults{said("prod", "prod", "5%")}, "", 33},
		"a silent Environment without an installation has the option": {[]v1alpha1.GuardDefaults{said("prod", "prod", "")}, "prod", 33},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewActive(tc.defaults, sets.New("prod")).Threshold(tc.environment, 33); got != tc.want {
				t.Errorf("the threshold is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheRuleOfAnEnvironmentComesBeforeThatOfTheInstallation(t *testing.T) {
	rules := func(of ...string) func(*v1alpha1.GuardDefaultsSpec) {
		return func(s *v1alpha1.GuardDefaultsSpec) {
			for i := 0; i < len(of); i += 2 {
				s.Readiness = append(s.Readiness, v1alpha1.ReadinessRule{APIGroup: "shop.example", Kind: of[i], Expression: of[i+1]})
			}
		}
	}
	f := NewActive([]v1alpha1.GuardDefaults{
		with(defaults("wide", "", time.Hour), rules("Basket", "wide", "Shelf", "wide")),
		with(defaults("late", "", 0), rules("Door", "late")),
		with(defaults("prod", "prod", 0), rules("Basket", "prod")),
	}, sets.New("prod", "dev"))
	type answer struct{ Expression, Source string }
	tests := map[string]struct {
		environment, group, kind string
		want                     answer
	}{
		"a rule of the Environment":                    {"prod", "shop.example", "Basket", answer{"prod", "GuardDefaults/prod"}},
		"a kind of which the Environment says nothing": {"prod", "shop.example", "Shelf", answer{"wide", "GuardDefaults/wide"}},
		"an Environment without defaults":              {"dev", "shop.example", "Basket", answer{"wide", "GuardDefaults/wide"}},
		"no Environment":                               {"", "shop.example", "Basket", answer{"wide", "GuardDefaults/wide"}},
		"defaults that are not in force":               {"", "shop.example", "Door", answer{}},
		"the same kind of another group":               {"", "other.example", "Basket", answer{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got answer
			rule, source := f.Readiness(test.environment, canon.GVK{Group: test.group, Version: "v9", Kind: test.kind})
			if rule != nil {
				got = answer{rule.Expression, source}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the rule (-want +got):\n%s", diff)
			}
		})
	}
	if rule, _ := (*Active)(nil).Readiness("prod", canon.GVK{}); rule != nil {
		t.Errorf("nil has the rule %v", rule)
	}
}
