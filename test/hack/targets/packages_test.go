// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Unit tests are divided by the faults that the race detector can find in them.
func TestEachRotationRunsAllPackages(t *testing.T) {
	list := func(kind, rotation string) []string {
		r := tree{t, root}.run([]string{"PLUMBLINE_LONG=", "PLUMBLINE_ROTATION=" + rotation}, "hack/packages.sh", kind)
		if r.status != 0 {
			t.Fatalf("hack/packages.sh %s: exit status %d:\n%s", kind, r.status, r.output)
		}
		return strings.Fields(r.output)
	}
	locks := list("locks", "1")
	if len(locks) < 10 {
		t.Fatalf("only %v lock and start no goroutine", locks)
	}
	united := map[string][]string{}
	for rotation, runs := range map[string]string{"0": "race", "1": "plain"} {
		lists := map[string][]string{"race": list("race", rotation), "plain": list("plain", rotation)}
		for _, folder := range locks {
			if !slices.Contains(lists[runs], folder) {
				t.Errorf("rotation %s does not run %s among %s", rotation, folder, runs)
			}
		}
		all := slices.Concat(lists["race"], lists["plain"])
		slices.Sort(all)
		united[rotation] = slices.Compact(all)
	}
	if diff := cmp.Diff(united["0"], united["1"]); diff != "" || len(united["0"]) < 100 {
		t.Errorf("%d packages run in rotation 0; in rotation 1 (-0 +1):\n%s", len(united["0"]), diff)
	}
}

func TestAListOfPackagesThatIsUnknownIsAnError(t *testing.T) {
	tree{t, root}.wantFailure(tree{t, root}.run(nil, "hack/packages.sh", "slow"), 2, "want race, plain or locks")
}
