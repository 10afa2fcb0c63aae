// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Fallback says what a run does about an active variation that shrinks while requests move away.
type Fallback string

// The fallbacks.
const (
	// FallbackWait holds the percentage until enough pods are ready.
	FallbackWait Fallback = "Wait"
	// FallbackHold has the executor hold the minimum of the autoscaler of the active variation for the run.
	FallbackHold Fallback = "HoldMinReplicas"
)

// Hold is a minimum of replicas that the executor holds for a run.
type Hold struct {
	// Run and Number of the work that holds it.
	Run, Number int64
	Variation   string
	// Replicas that the run needs.
	Replicas int
	// Autoscaler that the executor changed; nil if it had as many replicas already.
	Autoscaler *HeldAutoscaler
}

// HeldAutoscaler is an autoscaler with a minimum that the executor gave it, and the one of before.
type HeldAutoscaler struct {
	Name, UID       string
	Former, Minimum int
}

// IsHolding tells whether an autoscaler has a minimum that is to be put back, or may get one: the executor was
// asked, and has not answered.
func (s State) IsHolding() bool {
	w := s.lastWork()
	return s.Hold != nil && s.Hold.Autoscaler != nil || w != nil && w.Verb == HoldMinimum && !w.Phase.settled()
}

// NeedsPutBack tells whether the release may not go yet: an autoscaler has a minimum to be put back, and the
// executor has not refused to.
func (s State) NeedsPutBack() bool {
	w := s.lastOf(HoldMinimum)
	return s.IsHolding() && (w == nil || !w.putsBack() || w.Phase != WorkIsRefused)
}

// settleHold takes over what the executor holds. The newest work that has written says so, of whichever run:
// a run that is superseded does not undo what its work has written.
func (m *machine) settleHold() {
	var last *WorkAnswer
	for i := range m.Works {
		a := &m.Works[i]
		hasWritten := a.Phase == WorkSucceeded || a.Phase == WorkFailed
		if a.Verb == HoldMinimum && hasWritten && (last == nil || a.isAfter(last.Run, last.Number)) {
			last = a
		}
	}
	before := m.next.Hold
	if last == nil || before != nil && !last.isAfter(before.Run, before.Number) {
		return
	}
	if m.next.Hold = nil; last.Phase == WorkSucceeded && last.Replicas > 0 {
		m.next.Hold = &Hold{last.Run, last.Number, last.Variation, last.Replicas, last.Held}
	}
	m.tellHold(before, last)
}

func (a *WorkAnswer) isAfter(run, number int64) bool {
	return a.Run > run || a.Run == run && a.Number > number
}

// tellHold tells what became of the minimum.
func (m *machine) tellHold(before *Hold, a *WorkAnswer) {
	switch h := m.next.Hold; {
	case h != nil && h.Autoscaler != nil:
		m.tell(MinimumHeld, false, "minReplicas of HorizontalPodAutoscaler %s is held at %d, and was %d", h.Autoscaler.Name, h.Autoscaler.Minimum, h.Autoscaler.Former)
	case before == nil || before.Autoscaler == nil:
	case a.Replicas > 0 || a.Phase == WorkFailed || a.Message != "":
		m.tell(MinimumPutBack, true, "minReplicas of HorizontalPodAutoscaler %s is not restored to %d: %s", before.Autoscaler.Name, before.Autoscaler.Former, a.Message)
	default:
		m.tell(MinimumPutBack, false, "minReplicas of HorizontalPodAutoscaler %s is %d again", before.Autoscaler.Name, before.Autoscaler.Former)
	}
}

// wantsHold tells whether the spec asks for a minimum.
func (m *machine) wantsHold() bool { return m.Plan != nil && m.Plan.Fallback == FallbackHold }

// hasHold tells whether the minimum of the active variation is held for this run, as high as the run needs it.
func (m *machine) hasHold() bool {
	h, run := m.next.Hold, m.next.Run
	return !m.wantsHold() || h != nil && h.Run == run.Number && h.Variation == run.Active && h.Replicas >= min(run.Capacity, maxReplicas)
}

// isHeldUp tells whether the active variation keeps what all requests need; it asks for that and waits
// otherwise.
func (m *machine) isHeldUp() bool {
	if m.hasHold() {
		return true
	}
	if m.isIdle() {
		m.askHold()
		m.waitWork(m.next.lastWork())
	}
	return false
}

// raiseHold has the minimum follow an active variation that was scaled up in a stage. The run does not wait for
// it.
func (m *machine) raiseHold() {
	if w := m.next.lastWork(); !m.hasHold() && (w == nil || w.Phase == WorkSucceeded) {
		m.askHold()
	}
}

// askHold has the minimum of the active variation held. What is held of another variation is put back first.
func (m *machine) askHold() {
	run := m.next.Run
	if h := m.next.Hold; h != nil && h.Autoscaler != nil && h.Variation != run.Active {
		m.askPutBack()
		return
	}
	m.askFor(HoldMinimum, run.Active, max(run.Capacity, 1))
}

func (m *machine) askPutBack() { m.askFor(HoldMinimum, m.next.Hold.Variation, 0) }

// putBack has the former minimum put back. It tells whether that is done, or refused for good.
func (m *machine) putBack() bool {
	last, h := m.next.lastWork(), m.next.lastOf(HoldMinimum)
	switch {
	case !m.next.IsHolding():
		return true
	case last != nil && !last.Phase.settled():
		m.waitWork(last)
		return false
	case h != nil && h.putsBack() && h.Phase == WorkIsRefused:
		held := m.next.Hold.Autoscaler
		m.hold(WaitRefusedWork, "work %d, %s to %d, is %s: %s; set minReplicas of HorizontalPodAutoscaler %s to %d by hand", h.Number, h.Verb, h.Replicas, h.Phase, h.Message, held.Name, held.Former)
		return true
	}
	m.askPutBack()
	m.waitWork(m.next.lastWork())
	return false
}

// putBackEarly has the minimum that an earlier run has left put back while the next run has not started.
func (m *machine) putBackEarly() {
	w := m.next.lastWork()
	if m.next.runState() == Created && m.isSettled() && m.next.IsHolding() && (w == nil || w.Phase == WorkSucceeded) {
		m.askPutBack()
	}
}

func (w *Work) putsBack() bool { return w.Verb == HoldMinimum && w.Replicas == 0 }

// makesLess tells whether a work has the cluster do less, as works after a run do.
func (w *Work) makesLess() bool { return w.putsBack() || w.Verb == ScaleClone && w.Replicas == 0 }

// WindUp says what becomes of a minimum that is held, and of a fresh control, of a release that decides no more: the
// spec has no rollout any more, or the release is deleted while another release divides the Service. The run ends,
// the former minimum is put back, and the fresh control is scaled to 0. WindUp returns nil if neither is left.
func WindUp(f Facts) *Decision {
	f.Now = f.Now.Truncate(time.Second)
	m := &machine{Facts: f, next: f.Before.clone()}
	if m.settleWorks(); m.next.Run == nil || !m.Before.IsHolding() && !m.next.IsHolding() && !m.Before.owesControl() {
		return nil
	}
	if m.next.IsOn() {
		m.end(RolledBack, EndSuperseded, "the release decides about no run any more")
	}
	isBack := m.putBack()
	if isBack && m.Standing.Acknowledged && !m.Standing.Comparison.HasControl {
		m.shedControl()
	}
	d := m.decided(isBack)
	return &d
}

func writeHold(h *Hold) *v1alpha1.RolloutHold {
	if h == nil {
		return nil
	}
	out := &v1alpha1.RolloutHold{Run: h.Run, Number: h.Number, Variation: v1alpha1.VariationName(h.Variation), Replicas: int32(h.Replicas)} //nolint:gosec // bounded by the schema
	if a := h.Autoscaler; a != nil {
		out.Autoscaler = &v1alpha1.HeldAutoscaler{Name: a.Name, UID: a.UID, FormerMinReplicas: new(int32(a.Former)), MinReplicas: new(int32(a.Minimum))} //nolint:gosec // bounded by the schema
	}
	return out
}

func readHold(in *v1alpha1.RolloutHold) *Hold {
	if in == nil {
		return nil
	}
	return &Hold{in.Run, in.Number, string(in.Variation), int(in.Replicas), heldOf(in.Autoscaler)}
}

// heldOf reads what the executor holds; nil if it holds nothing.
func heldOf(in *v1alpha1.HeldAutoscaler) *HeldAutoscaler {
	if in == nil || in.FormerMinReplicas == nil || in.MinReplicas == nil {
		return nil
	}
	return &HeldAutoscaler{in.Name, in.UID, int(*in.FormerMinReplicas), int(*in.MinReplicas)}
}
