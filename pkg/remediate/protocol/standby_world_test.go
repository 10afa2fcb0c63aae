// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
)

// standby is what an API server has of the standby of a target: the ABRelease, and the Deployment
// that goes with it.
type standby struct {
	release   string // name of the ABRelease; empty when there is none
	moves     int    // its version
	toStandby bool
	// acknowledged says that all proxies have what the ABRelease says.
	acknowledged bool
	deployment   string
	up           bool
	// refuses says why there can be no standby, and dark that its pods never become ready.
	refuses string
	dark    bool
}

// serves says that the standby answers all requests.
func (s *standby) serves() bool { return s.release != "" && s.toStandby && s.acknowledged }

// standbyRequest is a write about a standby, bound to the version that its sender read.
type standbyRequest struct {
	bluegreen.Act
	step   int32
	name   string
	moves  int
	intent *v1alpha1.StepStandby
	// keeps says that its sender has read that the target answers fewer requests than the standby.
	keeps bool
}

// controllers have pods become ready, and proxies acknowledge.
func (w *world) controllers() {
	for _, o := range w.objects {
		o.up = o.deployment != "" && !o.dark
		o.acknowledged = o.release != ""
	}
}

// standbysArrive has all requests about standbys arrive that are late.
func (w *world) standbysArrive() {
	for _, r := range w.lateStandbys {
		w.arriveStandby(r)
	}
	w.lateStandbys = nil
}

func (w *world) arriveStandby(r standbyRequest) bluegreen.Acted {
	o := w.objects[r.step]
	inTime := !w.now.After(NotAfter(r.intent.StartTime.Time))
	switch {
	case r.Act == bluegreen.MakeRelease && o.release == "" && inTime:
		o.release, o.toStandby, o.acknowledged = r.name, false, false
	case r.Act == bluegreen.MakeStandby && o.deployment == "" && o.release == r.name && inTime:
		o.deployment, o.up = r.name, false
	case r.Act == bluegreen.MakeRelease, r.Act == bluegreen.MakeStandby:
		return bluegreen.Acted{}
	case o.release != r.name || o.moves != r.moves: // it conflicts
		return bluegreen.Acted{}
	case r.Act == bluegreen.Switch:
		w.checkSwitch(r, o)
		o.toStandby, o.acknowledged = true, false
	case r.Act == bluegreen.Return:
		if r.keeps {
			w.breaks("step %d returns requests to a target that is not ready", r.step)
		}
		o.toStandby, o.acknowledged = false, false
	case r.Act == bluegreen.Remove:
		if o.toStandby || w.plan.Status.Steps[r.step].Standby.Phase != v1alpha1.StandbyRemoving {
			w.breaks("step %d removes a standby that has requests", r.step)
		}
		o.release, o.deployment, o.up = "", "", false // the garbage collector follows
	}
	o.moves++
	return bluegreen.Acted{}
}

// checkSwitch: requests move to pods that answer, and the status says so before.
func (w *world) checkSwitch(r standbyRequest, o *object) {
	stored := w.plan.Status.Steps[r.step].Standby
	if stored == nil || stored.Phase == v1alpha1.StandbyPreparing || !o.up {
		w.breaks("step %d switches to a standby that is %+v", r.step, o.standby)
	}
	if w.effects[r.step] > 0 {
		w.breaks("step %d switches after it has written", r.step)
	}
}

// carryStandby carries out an act about a standby.
func (e *executor) carryStandby(x CarryStandby, f fate) {
	switch x.Act {
	case bluegreen.Read:
		e.learn(x.Step, func(s *StepFacts) { s.SawStandby(e.readStandby(x.Step, f)) })
		return
	case bluegreen.Note:
		if f == fine {
			e.learn(x.Step, func(s *StepFacts) { s.StandbyEvidence = &v1alpha1.StepEvidence{Sequence: 1, Digest: "sha256:standby"} })
			return
		}
		e.learn(x.Step, func(s *StepFacts) { s.ActedOnStandby(bluegreen.Acted{Lost: true}) })
		return
	case bluegreen.MakeRelease, bluegreen.MakeStandby, bluegreen.Switch, bluegreen.Return, bluegreen.Remove:
	}
	stored := e.plan.Status.Steps[x.Step].Standby
	r := standbyRequest{Act: x.Act, step: x.Step, name: stored.Name, moves: e.seen[x.Step].moves, intent: stored}
	if seen := e.facts.Of(x.Step).Standby; seen != nil {
		r.keeps = seen.Target.Exists && seen.Target.ReadyReplicas < max(1, stored.TargetReplicas) && seen.Standby.ReadyReplicas > 0
	}
	acted := bluegreen.Acted{Lost: true}
	switch f {
	case fine:
		acted = e.w.arriveStandby(r)
	case unanswered:
		e.w.arriveStandby(r)
	case late:
		e.w.lateStandbys = append(e.w.lateStandbys, r)
	case unsent:
	}
	e.learn(x.Step, func(s *StepFacts) { s.ActedOnStandby(acted) })
}

func (e *executor) readStandby(step int32, f fate) bluegreen.Seen {
	if f != fine {
		return bluegreen.Seen{Why: "no answer"}
	}
	o := e.w.objects[step]
	e.seen[step] = o.standby
	name := ""
	if stored := e.plan.Status.Steps[step].Standby; stored != nil {
		name = stored.Name
	}
	seen := bluegreen.Seen{
		Known: true, Obstacle: o.refuses, ServiceName: "front", Replicas: 3,
		Target:  bluegreen.Workload{Exists: o.exists, Ready: o.ready},
		Standby: bluegreen.Workload{Exists: o.deployment != "", Foreign: o.deployment != name, Ready: o.up},
		Release: bluegreen.Release{Exists: o.release != "", Foreign: o.release != name, ToStandby: o.toStandby, InForce: o.acknowledged},
	}
	if o.ready {
		seen.Target.ReadyReplicas = 3
	}
	if o.up {
		seen.Standby.ReadyReplicas = 3
	}
	return seen
}
