// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"
)

// Supersede says what becomes of a run when a variation gets another revision in the middle of it.
type Supersede string

// The policies. A revision that reaches the workload all the same supersedes the run with each of them.
const (
	// SupersedeRestart begins the next run with it.
	SupersedeRestart Supersede = "Restart"
	// SupersedeQueue has another change of a clone wait until the run has ended.
	SupersedeQueue Supersede = "Queue"
	// SupersedeReject has the API server refuse it, by a policy of the chart.
	SupersedeReject Supersede = "Reject"
)

// Kept is a change of a clone, and the canary that it gives.
type Kept struct {
	Clone Clone
	Arm   Arm
}

// keepChange has a run go on with the change that it began with, while the spec asks for another one. Before the
// executor has made the clone for the run, there is nothing to go on with. Another revision of the baseline ends
// the run as ever.
func (m *machine) keepChange() {
	run := m.next.Run
	if !m.next.IsOn() || !run.isCloned() || m.Clone == nil || m.Plan == nil {
		return
	}
	if m.Plan.Supersede != SupersedeQueue || m.Kept == nil || m.Kept.Clone.Hash != run.Change || m.next.sized() == 0 {
		run.QueuedTime = time.Time{}
		return
	}
	m.spec = &Kept{*m.Clone, m.Arms[run.Canary]}
	kept := m.Kept.Clone
	m.setChange(&kept, m.Kept.Arm)
	switch {
	case m.spec.Arm.Revision.Is(m.Kept.Arm.Revision):
		run.QueuedTime = time.Time{}
	case run.QueuedTime.IsZero():
		run.QueuedTime = m.Now
		m.tell(ChangeQueued, false, "the next run is queued: %s waits until run %d has ended", m.spec.Clone.Change, run.Number)
	}
}

// takeUpSpec has what follows a run go by the spec again.
func (m *machine) takeUpSpec() {
	m.next.Run.QueuedTime = time.Time{}
	if m.spec != nil {
		m.setChange(&m.spec.Clone, m.spec.Arm)
		m.spec = nil
	}
}

// setChange has the decision go by a change of the clone. The facts of the caller stay.
func (m *machine) setChange(c *Clone, canary Arm) {
	m.Clone, m.Arms = c, maps.Clone(m.Arms)
	m.Arms[c.Variation] = canary
}

// Bounds of the images that a run stores.
const (
	maxImages = 12
	maxImage  = 384
)

// ImageOf returns what a container runs, as the policy of the API server compares it.
func ImageOf(container, image string) string { return container + "=" + image }

// learnImages stores the images of the active variation while the API server refuses other revisions: a change
// that returns to these images passes. The images stay while the spec cannot be carried out.
func (m *machine) learnImages() {
	if !m.next.IsOn() || m.Plan == nil {
		return
	}
	run := m.next.Run
	if m.Plan.Supersede != SupersedeReject {
		run.ActiveImages = nil
		return
	}
	if active, is := m.arm(run.Active); is && active.Revision.Is(run.From) {
		run.ActiveImages = boundImages(active.Images)
	}
}

// boundImages returns sorted images; nil if they are too many or too long, so that none is missing.
func boundImages(images []string) []string {
	isLong := func(image string) bool { return len(image) > maxImage }
	if len(images) == 0 || len(images) > maxImages || slices.ContainsFunc(images, isLong) {
		return nil
	}
	return slices.Sorted(slices.Values(images))
}
