// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAnAnnotationThatDecidesOverrulesTheRest(t *testing.T) {
	tests := map[string]struct {
		guards []Guard
		want   []string
	}{
		"a guard that decided before": {
			[]Guard{guard("web", hours(6), v1alpha1.ObjectOverrideLengthen)},
			[]string{"Object: decides; plumbline.dev/resync-period says 9h", "Guard: overruled; SpecGuard/web says 6h", "BuiltIn: overruled; nobody says 0s"},
		},
		"the last level, where no other one speaks": {
			[]Guard{guard("web", nil, v1alpha1.ObjectOverrideLengthen)},
			[]string{"Object: decides; plumbline.dev/resync-period says 9h", "BuiltIn: overruled; nobody says 0s"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, step := range Resolve(Hierarchy{GVK: deployment, Annotations: asks("9h"), Guards: tc.guards}).Period.Trail {
				if step.Verdict != VerdictSilent {
					got = append(got, step.String())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("levels that speak (-want +got):\n%s", diff)
			}
		})
	}
}
