// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// NameOf returns the name of the assessment of a step of a plan.
func NameOf(plan string, step int32) string {
	return specguard.BoundName(plan + "-" + strconv.Itoa(int(step)))
}
