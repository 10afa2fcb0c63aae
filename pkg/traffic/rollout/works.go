// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
)

// WorkVerb says what the executor does to a workload.
type WorkVerb string

// The verbs.
const (
	// CreateClone makes the Deployment of the canary, or of the fresh control, from that of the active
	// variation, or has the one of an earlier run follow it.
	CreateClone WorkVerb = "CreateClone"
	// ScaleClone gives the Deployment of the canary another size, or that of either group.
	ScaleClone WorkVerb = "Scale"
	// ChangeBaseline puts the change of the canary into the pod template of the active variation.
	ChangeBaseline WorkVerb = "UpdateBaseline"
	// HoldMinimum raises the minimum of the autoscaler of a variation, or, with no replicas, puts the former
	// minimum back.
	HoldMinimum WorkVerb = "HoldMinReplicas"
)

// WorkPhase is how far a work is.
type WorkPhase string

// The phases. A work that succeeded, was refused, or failed goes no further.
const (
	WorkIsPending WorkPhase = "Pending"
	WorkIsRunning WorkPhase = "Running"
	WorkSucceeded WorkPhase = "Succeeded"
	WorkIsRefused WorkPhase = "Refused"
	WorkFailed    WorkPhase = "Failed"
)

// settled tells whether a work goes no further. One of an unknown phase does, so that the run waits.
func (p WorkPhase) settled() bool {
	switch p {
	case WorkSucceeded, WorkIsRefused, WorkFailed:
		return true
	case WorkIsPending, WorkIsRunning:
		return false
	}
	return false
}

// MaxWorks are kept of a run. The last ones are.
const MaxWorks = 8

// Work is a change of a workload that the executor is asked for.
type Work struct {
	// Number of the work in its run, from 1.
	Number int64
	Run    int64
	Verb   WorkVerb
	// Variation is the canary or the fresh control, or of HoldMinimum the one that the autoscaler scales.
	Variation string
	// Replicas of the canary, or the minimum; 0 of ChangeBaseline.
	Replicas int
	// ExpectedHash is the pod template of the active variation that the work starts from, or that of the
	// group. The executor asks nothing of it to scale to 0, nor after a run.
	ExpectedHash string
	Phase        WorkPhase
	// Message of the executor.
	Message string
}

// WorkAnswer is what the executor says of a work.
type WorkAnswer struct {
	Run, Number int64
	Verb        WorkVerb
	Variation   string
	Replicas    int
	Phase       WorkPhase
	Message     string
	// TemplateHash is the pod template that the work has left; empty if that is not known.
	TemplateHash string
	// Distrusted says that the work waits because a guard does not trust the author of the release.
	Distrusted bool
	// Held is the autoscaler that a HoldMinimum has changed; nil if it has changed none.
	Held *HeldAutoscaler
}

// ask has the executor asked for a work about the canary.
func (m *machine) ask(verb WorkVerb, replicas int) { m.askFor(verb, m.next.Run.Canary, replicas) }

// askFor has the executor asked for a work. The number of a work is used once.
func (m *machine) askFor(verb WorkVerb, variation string, replicas int) {
	run := m.next.Run
	w := Work{Number: 1, Run: run.Number, Verb: verb, Variation: variation, Replicas: min(replicas, maxReplicas), ExpectedHash: run.From.Hash, Phase: WorkIsPending}
	if run.Division != nil {
		w.ExpectedHash = m.groupHash(variation)
	}
	if last := m.next.lastWork(); last != nil {
		w.Number = last.Number + 1
	}
	m.next.Works = append(m.next.Works, w)
	if extra := len(m.next.Works) - MaxWorks; extra > 0 {
		m.next.Works = m.next.Works[extra:]
	}
}

// lastWork of the run; nil if nothing was asked for.
func (s *State) lastWork() *Work {
	if n := len(s.Works); n > 0 {
		return &s.Works[n-1]
	}
	return nil
}

// lastOf returns the last work of one of the verbs about a variation of the release; nil if none was asked for.
func (s *State) lastOf(verbs ...WorkVerb) *Work {
	for i := len(s.Works) - 1; i >= 0; i-- {
		if s.Works[i].Variation != freshControl && slices.Contains(verbs, s.Works[i].Verb) {
			return &s.Works[i]
		}
	}
	return nil
}

// HasOpenWork tells whether the executor has something to do.
func (s State) HasOpenWork() bool {
	w := s.lastWork()
	return w != nil && !w.Phase.settled()
}

// settleWorks takes over what the executor says. A work that goes no further keeps its answer.
func (m *machine) settleWorks() {
	for i := range m.next.Works {
		w := &m.next.Works[i]
		at := slices.IndexFunc(m.Works, func(a WorkAnswer) bool { return a.Run == w.Run && a.Number == w.Number })
		if at < 0 || w.Phase.settled() {
			continue
		}
		answer := m.Works[at]
		w.Phase, w.Message = answer.Phase, shorten(answer.Message, maxWorkMessage)
		if !w.Phase.settled() && w.Phase != WorkIsPending { // the executor of another version says more
			w.Phase = WorkIsRunning
		}
		if w.Phase == WorkSucceeded && w.Verb == ScaleClone {
			m.next.Run.give(w.Variation, w.Replicas)
		}
		m.next.Run.settleControl(w, &answer)
		if w.Phase.settled() && w.Phase != WorkSucceeded {
			m.tell(WorkNotDone, true, "work %d, %s of run %d, is %s: %s", w.Number, w.Verb, w.Run, w.Phase, w.Message)
		}
	}
	m.settleHold()
}

// dropWorks closes the works of a run that ends before the executor was told of them, but for those that have the
// cluster do less.
func (m *machine) dropWorks() {
	for i := range m.next.Works {
		if w := &m.next.Works[i]; w.Phase == WorkIsPending && !w.makesLess() && !m.isKnown(w) {
			w.Phase, w.Message = WorkFailed, "the run ended before the executor was told"
		}
	}
}

// isKnown tells whether the executor was told of a work.
func (m *machine) isKnown(w *Work) bool {
	return slices.ContainsFunc(m.Works, func(a WorkAnswer) bool { return a.Run == w.Run && a.Number == w.Number })
}

// missing are the works that the executor has to be told of: they were decided, and it does not have them.
// Of a run that has ended only the works that have the cluster do less are left.
func (m *machine) missing() []Work {
	var missing []Work
	for i := range m.next.Works {
		w := &m.next.Works[i]
		isOver := !m.next.IsOn() && !w.makesLess() && !m.next.owesGroups()
		if w.Phase == WorkIsPending && !isOver && !m.isKnown(w) {
			missing = append(missing, *w)
		}
	}
	return missing
}

// isIdle tells whether the executor has done all that it was asked for; the run waits otherwise.
func (m *machine) isIdle() bool { return m.isDone(m.next.lastWork()) }

// isDone tells whether the executor has done a work; the run waits otherwise. A work that was not done waits
// for a person. A minimum that the spec asks for no more needs no person.
func (m *machine) isDone(w *Work) bool {
	switch {
	case w == nil || w.Phase == WorkSucceeded:
		return true
	case w.Phase.settled() && w.Verb == HoldMinimum && !m.wantsHold():
		return true
	case !w.Phase.settled():
		m.waitWork(w)
		return false
	case m.next.Run.State.Ended():
		m.hold(WaitRefusedWork, "work %d, %s to %d, is %s: %s; scale Deployment %s by hand", w.Number, w.Verb, w.Replicas, w.Phase, w.Message, m.deployment())
		return false
	}
	m.waitPerson(WaitRefusedWork, "a person to remove the cause that keeps work %d, %s, from being done, and to ask for Retry or Rollback: it is %s: %s", w.Number, w.Verb, w.Phase, w.Message)
	return false
}

// isDistrusted tells whether a guard does not trust the author of the release, so the executor does not
// write.
func (m *machine) isDistrusted(w *Work) bool {
	return slices.ContainsFunc(m.Works, func(a WorkAnswer) bool { return a.Run == w.Run && a.Number == w.Number && a.Distrusted })
}

// waitWork waits for the executor, or for a person if the executor may not write.
func (m *machine) waitWork(w *Work) {
	if m.next.IsOn() && m.isDistrusted(w) {
		m.waitPerson(WaitTrust, "a person to change the guard or the author of the release: %s", w.Message)
		return
	}
	text := "the executor to carry out work %d of run %d, %s: "
	says := w.Message
	switch {
	case says != "":
	case w.Phase == WorkIsPending:
		text = "the executor to take up work %d of run %d, %s: "
		says = "see kubectl get releaseworks, and set executor.enabled in the values of the chart if there is no executor"
	default:
		says = "see kubectl get releaseworks"
	}
	m.waitTold(WaitWork, m.deadlines().Deployment, text+"%s", w.Number, w.Run, w.Verb, says)
}

// retryWork asks for the last work of the run once more, and returns why it does not. What the work needs
// has to hold still.
func (m *machine) retryWork() string {
	w := m.next.lastWork()
	if m.isPaused() || m.next.Run.hasRequests() && !m.isRouted("the percentage that is wanted") {
		return m.refuseUnless(false)
	}
	if w.Verb == HoldMinimum && !w.putsBack() {
		m.askHold() // the active variation may have grown
		return ""
	}
	m.askFor(w.Verb, w.Variation, w.Replicas)
	return ""
}

// isRefused tells whether the last work of the run was refused, or failed.
func (s *State) isRefused() bool {
	w := s.lastWork()
	return w != nil && (w.Phase == WorkIsRefused || w.Phase == WorkFailed)
}
