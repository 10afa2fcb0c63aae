// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verdict says whether a GuardDefaults is in force, and why not.
type Verdict struct {
	Active bool
	// Broken says that a part of what is in force has no effect.
	Broken          bool
	Reason, Message string
}

// Rank decides for each GuardDefaults, by name, whether it is in force.
func Rank(defaults []v1alpha1.GuardDefaults, environments sets.Set[string]) map[string]Verdict {
	ranked := slices.Clone(defaults)
	slices.SortFunc(ranked, func(a, b v1alpha1.GuardDefaults) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	first := map[string]string{}
	verdicts := make(map[string]Verdict, len(ranked))
	for i := range ranked {
		d := &ranked[i]
		scope := d.Spec.EnvironmentName
		if scope != "" && !environments.Has(scope) {
			verdicts[d.Name] = Verdict{
				Reason:  "UnknownEnvironment",
				Message: fmt.Sprintf("spec.environmentName: there is no environment %q", scope),
			}
			continue
		}
		if older, taken := first[scope]; taken {
			verdicts[d.Name] = Verdict{
				Reason:  "OlderActive",
				Message: fmt.Sprintf("the older %s is active %s", older, where(scope)),
			}
			continue
		}
		first[scope] = d.Name
		verdicts[d.Name] = Verdict{Active: true, Reason: "Active", Message: "in force " + where(scope)}
	}
	return verdicts
}

func where(environment string) string {
	if environment == "" {
		return "for the whole installation"
	}
	return fmt.Sprintf("for environment %q", environment)
}
