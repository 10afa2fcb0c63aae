// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/labels"
)

// Deletion says that the release is being deleted, and where its requests go afterwards: proxies that have
// no split send the requests to the pods that the Service selects.
type Deletion struct {
	// To is the variation that the Service selects; empty if the Service selects none of them.
	To string
	// Ready are the endpoints of To, and Wants as many as the active variation has.
	Ready, Wants int
}

// FindSelected returns the variation whose pods a Service selects by itself: the active one if the Service
// selects it, or else the first that the Service selects. It is empty if the Service selects none. A
// Service without a selector selects no pods.
func FindSelected(selector map[string]string, active string, variations [2]string, arms map[string]Arm) string {
	selects := func(variation string) bool {
		arm, is := arms[variation]
		return is && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(arm.Labels))
	}
	if selects(active) {
		return active
	}
	for _, variation := range variations {
		if selects(variation) {
			return variation
		}
	}
	return ""
}

// NeedsReturn tells whether requests have to return before the release may go: while a run is on, and
// while the Service selects another variation than the active one.
func (s State) NeedsReturn(selected string) bool {
	return s.IsOn() || s.Run != nil && selected != "" && selected != s.Active
}

// giveBack returns all requests to the variation that the Service selects, and puts a minimum back that is
// held. It tells whether that is done, so that the release can go.
func (m *machine) giveBack() bool {
	if m.next.IsOn() {
		m.end(RolledBack, EndDeleted, "the release is deleted")
	}
	isGiven := !m.next.owesGroups() || m.isGivenBack()
	if isRefused := m.wait != nil && m.wait.Reason == WaitRefusedWork; isRefused { // a person scales the groups then
		isGiven = true
	}
	areReturned := m.next.Run != nil && !m.next.Run.hasRequests() || m.returnRequests()
	return isGiven && areReturned
}

// returnRequests tells whether all requests have returned to the variation that the Service selects, and whether a
// minimum that was held is back.
func (m *machine) returnRequests() bool {
	to := m.Deletion.To
	switch {
	case m.next.Run == nil:
		return true
	case to == "":
		return m.putBack()
	case to == m.next.Active:
	case m.Deletion.Ready < m.Deletion.Wants:
		m.hold(WaitReturn, "%s, which the Service selects, has %d ready pods and wants %d: the release goes when they are ready", to, m.Deletion.Ready, m.Deletion.Wants)
		return false
	default:
		m.next.Active = to
		m.tell(RequestsReturned, false, "all requests return to %s, which the Service selects: the release is deleted", to)
	}
	isBack := m.putBack()
	// What proxies have acknowledged was decided before this look.
	if !m.Before.IsOn() && m.Before.Active == to && m.isSettled() {
		return isBack
	}
	return m.waitProxies("all requests to go to " + to)
}
