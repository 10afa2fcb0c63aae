// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// NameOfRun returns the name of the assessment of a run of a release. The name of a step ends with a hyphen and
// digits, so no step of any plan has the name of a run.
func NameOfRun(release string, run int64) string {
	return specguard.BoundName(release + "-run" + strconv.FormatInt(run, 10))
}

// NameOf returns the name of the assessment of a step of a plan.
func NameOf(plan string, step int32) string {
	return specguard.BoundName(plan + "-" + strconv.Itoa(int(step)))
}
