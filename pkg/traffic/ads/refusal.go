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

// removal stands for a removal that a proxy refuses.
var removal = &Resource{Version: gone}

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

// refusesToGo reports whether the proxy refused the removal less than [Config.RemovalDeadline] ago. A proxy
// that is asked again at once refuses again.
func (s *Stream) refusesToGo(h *held, now time.Time) bool {
	r := h.refusal(removal)
	if r == nil || !now.Before(r.at.Add(s.config.RemovalDeadline)) {
		return false
	}
	h.since = r.at
	return true
}

// instead is what a proxy gets that refuses what there is: if it has nothing, what
// another one took before, or what stands for nothing; if it needs what it has once
// more, that.
func (s *Stream) instead(k Key, h *held) (*Resource, verdict, bool) {
	if h.known && h.again {
		if former := s.former(k, h); former != nil {
			return former, sends, false
		}
		// Envoy goes on with what it has after initial_fetch_timeout.
	}
	if h.known || !h.named {
		return nil, nothing, false
	}
	former := s.former(k, h)
	if former != nil && k.Type == Route && !s.ready(former) {
		former = s.missing(k)
	}
	if former == nil || h.parks(former) {
		return nil, nothing, false
	}
	return former, sends, false
}
