// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
	"time"
)

// refusal is a version that the proxy does not take, or is not to have.
type refusal struct {
	resource *Resource
	message  string
	at       moment
}

// refusals of a name, at least one and the last one last. Most names have none.
type refusals struct{ of []refusal }

func (r *refusals) last() refusal { return r.of[len(r.of)-1] }

// maxParked is how many refused versions are remembered of a name: more than there
// are candidates at once. maxMessage is how many bytes of what a proxy says are: a
// resource may be refused by all of them.
const maxParked, maxMessage = 4, 512

// park notes that the proxy is not sent a version again, and why.
func (h *held) park(r *Resource, message string, now time.Time) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	if h.parked == nil {
		h.parked = &refusals{}
	}
	h.parked.of = append(h.parked.of, refusal{r, message, at(now)})
	h.parked.of = h.parked.of[max(0, len(h.parked.of)-maxParked):]
}

// refusal of a version, the last one; nil when there is none.
func (h *held) refusal(r *Resource) *refusal {
	if h.parked == nil {
		return nil
	}
	for i := range slices.Backward(h.parked.of) {
		if h.parked.of[i].resource.Version == r.Version {
			return &h.parked.of[i]
		}
	}
	return nil
}

// parks says that the proxy has refused a version.
func (h *held) parks(r *Resource) bool { return h.refusal(r) != nil }
