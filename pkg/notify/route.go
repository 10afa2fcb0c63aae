// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// Route names the channels that are told of an event, in their order: those whose
// MinimumSeverity the event reaches. An urgent event that reaches no channel goes to
// all of them, because the event asks a person to act.
func Route(e Event, channels []Channel) []string {
	var told, all []string
	for i := range channels {
		all = append(all, channels[i].Name)
		if reaches(e.Severity, channels[i].MinimumSeverity) {
			told = append(told, channels[i].Name)
		}
	}
	if len(told) == 0 && e.Type.Urgent() {
		return all
	}
	return told
}

// reaches reports whether a level is at least the minimum. A level that is missing or
// unknown may stand for the worst, so it reaches every minimum; a minimum that is
// missing or unknown keeps no event away.
func reaches(level, minimum v1alpha1.SeverityLevel) bool {
	known := severity.CompareLevels(level, "") > 0
	return !known || severity.CompareLevels(level, minimum) >= 0
}
