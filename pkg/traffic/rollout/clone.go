// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Promotion says what becomes of a canary that has passed all stages.
type Promotion string

// The promotions.
const (
	// KeepVariation makes the canary the active variation.
	KeepVariation Promotion = "KeepVariation"
	// UpdateBaseline has the executor put the change of the canary into the active variation.
	UpdateBaseline Promotion = "UpdateBaseline"
	// AwaitBaseline waits until the owner of the active variation has put the change into it.
	AwaitBaseline Promotion = "AwaitBaseline"
)

// returns tells whether the requests return to the active variation once it has the change of the canary.
// The canary is a clone then.
func (p Promotion) returns() bool { return p == UpdateBaseline || p == AwaitBaseline }

// Clone describes a canary that the executor makes from the workload of the active variation.
type Clone struct {
	Variation string
	// Deployment is the clone, and Baseline the Deployment that it is made from.
	Deployment, Baseline string
	// MinReplicas is the least size of the clone in a run.
	MinReplicas int
	// Altered says that the Deployment of the clone has another pod template than the release gives.
	Altered bool
	// Changed says that the baseline has the change of the clone: to change it again changes nothing.
	Changed bool
	// Hash identifies the change, and Change says for people what differs, such as the images.
	Hash, Change string
}

// DefaultHeadroomPercent is what a clone has beyond its part of the endpoints, and MaxHeadroomPercent the most
// that an installation can give it.
const (
	DefaultHeadroomPercent = 25
	MaxHeadroomPercent     = 200
)

// headroom of a clone, in percent. It holds while the spec cannot be carried out as well.
func (m *machine) headroom() int {
	if m.Plan == nil {
		return DefaultHeadroomPercent
	}
	return m.Plan.HeadroomPercent
}

// isScaled tells whether the executor gives the canary its size.
func (r *Run) isScaled() bool { return r.isCloned() || r.Division != nil }

// isCloned tells whether the canary of the run is a clone.
func (r *Run) isCloned() bool { return r.Promotion.returns() }

// size of a clone for a weight: its part of the endpoints of the active variation, with headroom.
func (m *machine) size(weight traffic.Weight) int {
	least, whole := 1, int(traffic.Total)*100
	if m.Clone != nil {
		least = max(least, m.Clone.MinReplicas)
	}
	return max(least, (int(weight)*m.next.Run.Capacity*(100+m.headroom())+whole-1)/whole)
}

// sized is the size that the clone was given last in this run; 0 if it was given none.
func (s *State) sized() int {
	for i := len(s.Works) - 1; i >= 0; i-- {
		w := &s.Works[i]
		if isSize := w.Verb == CreateClone || w.Verb == ScaleClone; isSize && w.Variation != freshControl && w.Phase == WorkSucceeded {
			return w.Replicas
		}
	}
	return 0
}

// isSized tells whether a clone was given the size for a weight; it asks for that and waits otherwise. A
// clone never shrinks in a run. A canary that is no clone has the size that its owner gives it.
func (m *machine) isSized(weight traffic.Weight) bool {
	switch {
	case m.next.Run.Division != nil:
		return m.isGrown(weight)
	case !m.next.Run.isCloned():
		return true
	case !m.isIdle():
		return false
	case m.next.sized() >= m.size(weight):
		return true
	}
	m.askSize(weight)
	m.waitWork(m.next.lastWork())
	return false
}

func (m *machine) askSize(weight traffic.Weight) {
	verb := ScaleClone
	if m.next.sized() == 0 { // its template is that of an earlier run, or it is not there
		verb = CreateClone
	}
	m.ask(verb, m.size(weight))
}

// grow has a clone follow an active variation that was scaled up in a stage. The run does not wait for it.
func (m *machine) grow(weight traffic.Weight) {
	w := m.next.lastWork()
	if m.next.Run.isCloned() && w != nil && w.Phase == WorkSucceeded && weight > 0 && m.next.sized() < m.size(weight) {
		m.askSize(weight)
	}
}

// shrink has a clone that gets no requests scaled to 0. It tells whether that is done.
func (m *machine) shrink() bool {
	if !m.next.Run.isCloned() {
		return true
	}
	w, canary := m.next.lastWork(), m.Arms[m.next.Run.Canary]
	last := m.next.lastOf(CreateClone, ScaleClone, ChangeBaseline)
	isAsked := last != nil && last.Verb == ScaleClone && last.Replicas == 0
	switch {
	case w != nil && !w.Phase.settled():
		m.waitWork(w)
		return false
	case isAsked:
		return m.isDone(last)
	case m.next.sized() == 0 && canary.Targets == 0:
		return true
	}
	m.ask(ScaleClone, 0)
	m.waitWork(m.next.lastWork())
	return false
}

// shrinkEarly has the clone that an earlier run has left scaled to 0 while the next run has not started.
func (m *machine) shrinkEarly() {
	if m.next.runState() == Created && m.next.Run.isCloned() && len(m.next.Works) == 0 && m.isSettled() && m.Arms[m.next.Run.Canary].Targets > 0 {
		m.ask(ScaleClone, 0)
	}
}

// endAltered ends a run whose clone another writer has changed: what is measured is not what the release
// asks for. The revision is not to blame, so a person can ask for Retry.
func (m *machine) endAltered() {
	if m.isAltered() {
		m.end(RolledBack, EndSuperseded, "another writer has changed the Deployment "+m.deployment()+", which voids the measurement: ask for Retry")
	}
}

// isAltered tells whether another writer has changed the clone. A stage begins once the clone has its
// template, and no later work of the run gives it another one.
func (m *machine) isAltered() bool {
	if m.Clone == nil || !m.Clone.Altered || !m.next.IsOn() {
		return false
	}
	run := m.next.Run
	hasBegun := run.State == Running || run.State == Promoting && run.ReturnTime.IsZero()
	canary, is := m.arm(run.Canary)
	return is && run.isCloned() && hasBegun && canary.Revision.Is(run.To)
}

// deployment names the clone for people.
func (m *machine) deployment() string {
	if m.Clone == nil {
		return "of " + m.next.Run.Canary
	}
	return m.Clone.Deployment
}

// baseline names the workload of the active variation for people.
func (m *machine) baseline() string {
	if m.Clone == nil {
		return m.next.Run.Active
	}
	return m.Clone.Baseline
}
