// SPDX-License-Identifier: Apache-2.0

package specguard

import "time"

// The mass-drift freeze: when so much of a scope drifts at once, one cause is
// likelier than many (a default that an upgrade added, a guard that was changed),
// and correcting would make one mistake many times. As kube's node lifecycle
// controller stops evicting when most of a zone looks dead.
const (
	// MassDriftWindow is "at once": drift first seen within it counts.
	MassDriftWindow = 10 * time.Minute

	massDriftPercent    = 30
	massDriftObjects    = 3
	massDriftRelease    = 15 // percent; half of the threshold, against flapping
	massDriftReleaseMin = 2
)

// MassDrift tells whether recent of total objects, first seen drifting within
// MassDriftWindow, are a mass drift: at least 30 % and at least 3.
func MassDrift(total, recent int) bool {
	return recent >= massDriftObjects && recent*100 >= total*massDriftPercent
}

// NextMassDrift adds hysteresis: a freeze begins by recent drift, and ends when
// of all objects, drifting since whenever, less than 15 % or fewer than 2 are left.
func NextMassDrift(frozen bool, total, recent, drifted int) bool {
	if !frozen {
		return MassDrift(total, recent)
	}
	return drifted >= massDriftReleaseMin && drifted*100 >= total*massDriftRelease
}
