// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func defaults(name, environment string, age time.Duration) v1alpha1.GuardDefaults {
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return v1alpha1.GuardDefaults{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(-age))},
		Spec:       v1alpha1.GuardDefaultsSpec{EnvironmentName: environment},
	}
}

func TestRank(t *testing.T) {
	tests := map[string]struct {
		defaults []v1alpha1.GuardDefaults
		want     map[string]string
	}{
		"one install-wide and one per environment are all in force": {
			defaults: []v1alpha1.GuardDefaults{defaults("wide", "", 0), defaults("prod", "prod", 0), defaults("dev", "dev", 0)},
			want:     map[string]string{"wide": "Active", "prod": "Active", "dev": "Active"},
		},
		"of two that compete the older is in force": {
			defaults: []v1alpha1.GuardDefaults{defaults("young", "", 0), defaults("old", "", time.Hour)},
			want:     map[string]string{"young": "OlderActive", "old": "Active"},
		},
		"of two made in the same second the first by name is in force": {
			defaults: []v1alpha1.GuardDefaults{defaults("b", "prod", 0), defaults("a", "prod", 0)},
			want:     map[string]string{"b": "OlderActive", "a": "Active"},
		},
		"an environment that does not exist has no defaults": {
			defaults: []v1alpha1.GuardDefaults{defaults("lost", "gone", 0)},
			want:     map[string]string{"lost": "UnknownEnvironment"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for d, v := range Rank(tc.defaults, sets.New("prod", "dev")) {
				got[d] = v.Reason
				if v.Active != (v.Reason == "Active") {
					t.Errorf("%s: in force %t with reason %s", d, v.Active, v.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}
