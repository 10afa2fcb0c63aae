// SPDX-License-Identifier: Apache-2.0

package deliver

import "github.com/plumbline-dev/plumbline/pkg/notify"

// Claim is what a memory outside of the process says about an event on a channel.
// Others may write to that memory.
type Claim int

// The claims of a memory.
const (
	// NotTold: the memory has no mark.
	NotTold Claim = iota
	// Unproven: the memory has a mark that any writer of the memory could have left.
	Unproven
	// Proven: only a process that has the key can have left the mark.
	Proven
)

// Doubt is why an event is sent although a memory says that the event was told.
type Doubt string

// The reasons for a doubt.
const (
	// DoubtUnproven: the mark proves nothing.
	DoubtUnproven Doubt = "Unproven"
	// DoubtUrgent: the event is urgent, and a second alarm is better than none.
	DoubtUrgent Doubt = "Urgent"
)

// Doubts are all of them.
var Doubts = []Doubt{DoubtUnproven, DoubtUrgent}

// judge decides whether a claim keeps an event of a type from being sent, and which doubt
// it leaves where the event is sent all the same.
func judge(t notify.EventType, c Claim) (suppressed bool, doubt Doubt) {
	switch c {
	case NotTold:
		return false, ""
	case Proven:
		if t.Known() && !t.Urgent() {
			return true, ""
		}
		return false, DoubtUrgent
	case Unproven:
	}
	return false, DoubtUnproven
}
