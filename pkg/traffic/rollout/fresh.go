// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// ControlMode says with what the judge compares a canary.
type ControlMode string

// The modes.
const (
	// ControlStable is the active variation.
	ControlStable ControlMode = "Stable"
	// ControlFresh is a clone of the active variation that the executor makes for a run.
	ControlFresh ControlMode = "Fresh"
)

// freshControl is the variation that a fresh control is.
const freshControl = string(v1alpha1.FreshControl)

// FreshControl is a clone of the active variation, which gets as many requests as the canary and is compared with
// it. The clone is as large as the canary and as old, so what is new in both does not look like a fault of the
// canary.
type FreshControl struct {
	// Replicas that the executor was asked to give it; 0 once it is scaled to 0.
	Replicas int
	// Source is the pod template that it was made from, and Hash its own one; both are empty before.
	Source, Hash string
	// Required are the ready endpoints that the weight of the stage needs, and ShortSince is since when it has
	// fewer.
	Required   int
	ShortSince time.Time
	// ReadyTime is since when it has had the ready endpoints for the next weight; zero before, and beside a clone.
	ReadyTime time.Time
	// EndTime is since when the active variation is the control, and Message says why. The fresh control leaves
	// the split then.
	EndTime time.Time
	Message string
}

// Comparison is the place of a fresh control in a split. The zero Comparison says that the split has none.
type Comparison struct {
	HasControl bool
	Weight     traffic.Weight
}

// Comparison returns what the fresh control is to have. It is a variation of the split from the deployment of the
// canary on, and has the weight of the canary.
func (s State) Comparison() Comparison {
	if !s.hasControl() || s.Run.State == Created {
		return Comparison{}
	}
	c := Comparison{HasControl: true}
	if weight := s.Weight(); weight <= release.MaxControl {
		c.Weight = weight
	}
	return c
}

// ComparedWith is the variation with which the judge compares the canary of the run.
func (s State) ComparedWith() string {
	if s.Comparison().Weight > 0 {
		return freshControl
	}
	return s.Run.Active
}

func (s State) hasControl() bool {
	return s.Run != nil && s.Run.Control != nil && s.Run.Control.EndTime.IsZero()
}

// owesControl tells whether a fresh control may have pods that are to be scaled to 0.
func (s State) owesControl() bool {
	return s.Run != nil && s.Run.Control != nil && s.Run.Control.Replicas > 0
}

// isCompared tells whether proxies have the place of the fresh control that the state asks for. After a run a control
// without requests may still be in the split.
func (m *machine) isCompared() bool {
	has, wants := m.Standing.Comparison, m.next.Comparison()
	return has == wants || has.Weight == 0 && wants.Weight == 0 && !m.next.IsOn()
}

// newControl returns the fresh control of a run that begins; nil if the run has none. What an earlier run has left is
// taken over, or scaled to 0.
func (m *machine) newControl() *FreshControl {
	left := 0
	if m.next.owesControl() {
		left = m.next.Run.Control.Replicas
	}
	switch {
	case m.Plan.Control == ControlFresh && m.Plan.Strategy.hasCompared():
		return &FreshControl{Replicas: left}
	case left > 0:
		return &FreshControl{Replicas: left, EndTime: m.Now, Message: "the release asks for no control"}
	}
	return nil
}

// compares tells whether the canary is compared with the fresh control at a weight.
func (m *machine) compares(weight traffic.Weight) bool {
	return m.next.hasControl() && weight > 0 && weight <= release.MaxControl
}

// controlSize is how many replicas the fresh control has at a weight: as many as the canary.
func (m *machine) controlSize(weight traffic.Weight) int {
	run := m.next.Run
	if run.isCloned() {
		return min(m.size(weight), maxReplicas)
	}
	canary, _ := m.arm(run.Canary)
	return min(max(run.required(weight), cmp.Or(canary.Replicas, canary.Targets)), maxReplicas)
}

// isControlSized tells whether the fresh control was made and given its size for a weight; it asks for that and waits
// otherwise. A fresh control never shrinks in a run.
func (m *machine) isControlSized(weight traffic.Weight) bool {
	if !m.compares(weight) {
		return true
	}
	c, wants := m.next.Run.Control, m.controlSize(weight)
	switch {
	case !m.isIdle():
		return false
	case c.Source != m.next.Run.From.Hash:
		m.askControl(CreateClone, wants)
	case c.Replicas < wants:
		m.askControl(ScaleClone, wants)
	default:
		return true
	}
	m.waitWork(m.next.lastWork())
	return false
}

func (m *machine) askControl(verb WorkVerb, replicas int) {
	m.askFor(verb, freshControl, replicas)
	m.next.Run.Control.Replicas, m.next.Run.Control.ReadyTime = replicas, time.Time{}
}

// growControl has the fresh control follow the canary in a stage. The run does not wait for it.
func (m *machine) growControl(weight traffic.Weight) {
	w := m.next.lastWork()
	if m.compares(weight) && w != nil && w.Phase == WorkSucceeded && m.next.Run.Control.Replicas < m.controlSize(weight) {
		m.askControl(ScaleClone, m.controlSize(weight))
	}
}

// settleControl takes over what a work has made of the fresh control.
func (r *Run) settleControl(w *Work, a *WorkAnswer) {
	c := r.Control
	switch {
	case c == nil || w.Variation != freshControl || w.Phase != WorkSucceeded:
	case w.Verb == CreateClone:
		c.Source, c.Hash = w.ExpectedHash, a.TemplateHash
	case w.Verb == ScaleClone && w.Replicas == 0:
		c.Replicas = 0
	}
}

// isControlUp tells whether the fresh control can take a weight. At the deadline the run goes on with the active
// variation as control.
func (m *machine) isControlUp(weight traffic.Weight) bool {
	if !m.compares(weight) {
		return true
	}
	run := m.next.Run
	control, wants := m.Arms[freshControl], run.required(weight)
	if control.Ready >= wants && run.Control.isMadeBy(control) {
		return m.isControlWarm()
	}
	run.Control.ReadyTime = time.Time{}
	if !m.until(WaitControl, m.deadlines().Deployment, "%s: %d of %d are ready; at the deadline %s is the control", freshControl, control.Ready, wants, run.Active) {
		return false
	}
	m.endControl(true, "the fresh control was not ready in time")
	return true
}

// isControlWarm tells whether the fresh control has been ready for the warmup. A canary that is a workload has been
// there before the control, so a control with new pods would be the colder one of both, and excuse faults of the
// canary. A clone and its control are made together.
func (m *machine) isControlWarm() bool {
	c := m.next.Run.Control
	if m.next.Run.isCloned() || m.Plan == nil || m.Plan.Warmup <= 0 {
		return true
	}
	if c.ReadyTime.IsZero() {
		c.ReadyTime = m.Now
	}
	over := c.ReadyTime.Add(m.Plan.Warmup)
	if !m.Now.Before(over) {
		return true
	}
	m.waitUntil(WaitControl, over, "the pods of %s to be ready for %s, since those of %s are older", freshControl, m.Plan.Warmup, m.next.Run.Canary)
	return false
}

// isMadeBy tells whether an arm has the pod template that the executor has left.
func (c *FreshControl) isMadeBy(control Arm) bool {
	return c.Hash == "" || control.Revision.Hash == "" || control.Revision.Hash == c.Hash
}

// shiftControl begins a weight of the canary. Above [release.MaxControl] the active variation has too little left
// beside two arms, so it is the control itself.
func (m *machine) shiftControl(weight traffic.Weight) {
	switch {
	case !m.next.hasControl():
	case weight > release.MaxControl:
		m.endControl(false, "the canary gets %s%%, and a fresh control at most %s%%", percent(weight), percent(release.MaxControl))
	case weight > 0:
		m.next.Run.Control.Required, m.next.Run.Control.ShortSince = m.next.Run.required(weight), time.Time{}
	}
}

// watchControl ends the comparison with a fresh control that is none any more. A canary that fails ends the run
// before, so that its rollback is the one that is prepared.
func (m *machine) watchControl() {
	if !m.next.hasControl() || m.next.Run.Control.Required == 0 {
		return
	}
	run := m.next.Run
	c := run.Control
	control, is := m.Arms[freshControl]
	switch {
	case m.Plan != nil && m.Plan.Control != ControlFresh:
		m.endControl(false, "the release asks for no control any more")
	case c.Source != run.From.Hash:
		m.endControl(true, "%s has another revision than the fresh control", run.Active)
	case !is: // nothing is known
	case !c.isMadeBy(control):
		m.endControl(true, "another writer has changed the Deployment of %s", freshControl)
	case control.Ready >= c.Required:
		c.ShortSince = time.Time{}
	default:
		m.waitShort(control)
	}
}

// waitShort gives up a fresh control that has had too few ready endpoints for as long as a canary may.
func (m *machine) waitShort(control Arm) {
	c := m.next.Run.Control
	c.ReadyTime = time.Time{}
	if c.ShortSince.IsZero() {
		c.ShortSince = m.Now
	}
	if over := c.ShortSince.Add(judge.UnreadyLimit); m.Now.Before(over) {
		m.lookAt(over)
		return
	}
	m.endControl(true, "the fresh control has %d ready endpoints of %d", control.Ready, c.Required)
}

// endControl has the active variation be the control from now on.
func (m *machine) endControl(isWarning bool, format string, args ...any) {
	run := m.next.Run
	c := run.Control
	c.EndTime, c.Required, c.ShortSince = m.Now, 0, time.Time{}
	c.Message = shorten(fmt.Sprintf(format, args...), maxLine)
	m.tell(ControlEnded, isWarning, "run %d compares %s with %s itself: %s", run.Number, run.Canary, run.Active, c.Message)
}

// shedControl has a fresh control that has left the split scaled to 0. It tells whether that is done.
func (m *machine) shedControl() bool {
	if !m.next.owesControl() {
		return true
	}
	c, w := m.next.Run.Control, m.next.lastWork()
	last := m.next.lastAbout(freshControl)
	switch {
	case w != nil && !w.Phase.settled():
		m.waitWork(w)
		return false
	case last != nil && last.Replicas == 0: // it was not done
		m.hold(WaitRefusedWork, "work %d, %s of %s to 0, is %s: %s; scale its Deployment by hand", last.Number, last.Verb, freshControl, last.Phase, last.Message)
		return false
	}
	if c.EndTime.IsZero() {
		c.EndTime, c.Message = m.Now, "the run has ended"
	}
	m.askFor(ScaleClone, freshControl, 0)
	m.waitWork(m.next.lastWork())
	return false
}

// shedControlEarly does so in a run, which does not wait for it, and before a run has started.
func (m *machine) shedControlEarly() {
	w, last := m.next.lastWork(), m.next.lastAbout(freshControl)
	isAsked := last != nil && last.Replicas == 0
	isOut := m.next.runState() == Created || m.next.runState() == Running && !m.next.hasControl()
	if isOut && m.next.owesControl() && m.isSettled() && !isAsked && (w == nil || w.Phase == WorkSucceeded) {
		m.askFor(ScaleClone, freshControl, 0)
	}
}

// lastAbout returns the last work about a variation; nil if none was asked for.
func (s *State) lastAbout(variation string) *Work {
	for i := len(s.Works) - 1; i >= 0; i-- {
		if s.Works[i].Variation == variation {
			return &s.Works[i]
		}
	}
	return nil
}

func (r *Run) writeControl() *v1alpha1.RolloutFreshControl {
	c := r.Control
	if c == nil {
		return nil
	}
	return &v1alpha1.RolloutFreshControl{
		Replicas: new(int32(c.Replicas)), SourceHash: c.Source, TemplateHash: c.Hash, RequiredReady: int32(c.Required), //nolint:gosec // bounded
		ShortTime: timeOrNil(c.ShortSince), ReadyTime: timeOrNil(c.ReadyTime), CompletionTime: timeOrNil(c.EndTime), Message: c.Message,
	}
}

func controlIn(in *v1alpha1.RolloutFreshControl) *FreshControl {
	if in == nil {
		return nil
	}
	c := &FreshControl{Source: in.SourceHash, Hash: in.TemplateHash, Required: int(in.RequiredReady), ShortSince: timeOf(in.ShortTime), ReadyTime: timeOf(in.ReadyTime), EndTime: timeOf(in.CompletionTime), Message: in.Message}
	if in.Replicas != nil {
		c.Replicas = int(*in.Replicas)
	}
	return c
}
