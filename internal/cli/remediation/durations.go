// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// FormatTook says how long a step or plan took, after a comma; empty where that is not known.
func FormatTook(took *metav1.Duration) string {
	if took == nil {
		return ""
	}
	return ", took " + took.Duration.String()
}

// FormatDurations says how long the targets took; empty where none began.
func FormatDurations(took packet.Durations) string {
	if took.Total == nil {
		return ""
	}
	return fmt.Sprintf("%s in total, %s on average", took.Total.Duration, took.Average.Round(time.Millisecond))
}
