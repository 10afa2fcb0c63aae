// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A guard outlives its namespace's first moments of being deleted, and the doctor
// once tried to write there.
func TestNothingIsTriedInANamespaceThatIsBeingDeleted(t *testing.T) {
	tests := map[string]struct {
		there  []string
		known  bool
		want   string
		guards []Guard
	}{
		"another guard's namespace is taken": {
			there: []string{"shop"}, known: true, want: "shop",
			guards: []Guard{specGuard("a-ending", "g", v1alpha1.GuardModeWarn, "Deployment"), specGuard("shop", "g", v1alpha1.GuardModeWarn, "Deployment")},
		},
		"without another guard, one that none selects": {
			there: []string{"default"}, known: true, want: "default",
			guards: []Guard{specGuard("a-ending", "g", v1alpha1.GuardModeWarn, "Deployment")},
		},
		"where namespaces cannot be read, the guard's own": {
			want:   "a-ending",
			guards: []Guard{specGuard("a-ending", "g", v1alpha1.GuardModeWarn, "Deployment")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			s.Guards = Got(test.guards)
			s.Namespaces = Read[map[string]map[string]string]{}
			if test.known {
				all := map[string]map[string]string{}
				for _, n := range test.there {
					all[n] = nil
				}
				s.Namespaces = Got(all)
			}
			if plan, ok := PlanWrite(s, ""); !ok || plan.Namespace != test.want {
				t.Errorf("it is tried in %q (%t), want %q", plan.Namespace, ok, test.want)
			}
		})
	}
}
