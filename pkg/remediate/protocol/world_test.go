// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

const (
	driftedHash = "pl1:drifted"
	desiredHash = "pl1:desired"
)

// object is a target as the API server has it.
type object struct {
	exists     bool
	uid        string
	version    int
	generation int64
	hash       string
	token      string
	ready      bool
	ending     bool
	baseline
	standby
}

// baseline is the one of a target: what a quarantine writes.
type baseline struct {
	moved int // its version
	// quarantine and ended are tokens, and of is the object that is in quarantine.
	quarantine, ended, of string
	held                  bool
}

// request is a write of a target, bound to what its sender knew.
type request struct {
	step    int32
	uid     string
	version string
	fence   bool
	action  v1alpha1.RemediationAction
	token   string
	sent    time.Time
	// notAfter is the last second in which a creation is admitted.
	notAfter time.Time
}

// world is an API server, with everything that writes to it.
type world struct {
	plan    *v1alpha1.RemediationPlan
	version int
	objects []*object
	ledger  *ledger.Status
	rules   ledger.Rules
	records map[int32]bool
	now     time.Time
	// delayed are requests that were sent and have not arrived.
	delayed []request
	// lateStandbys are those about standbys.
	lateStandbys []standbyRequest
	// effects counts the stored writes of each step, and broken tells the first
	// promise that was broken.
	effects map[int32]int
	broken  string
	closed  string
	// superseded says why the plan is no longer wanted, and unread that brakes
	// cannot be read.
	superseded string
	unread     bool
	// closesAt is when the schedule closes; zero when it does not.
	closesAt time.Time
	halted   string
	damaged  bool
	// forbidden says that the executor may not write targets just now.
	forbidden bool
	uids      int
	// mute says that the store of the records takes none.
	mute bool
	// announced is how often people were told of the end.
	announced int
	// health is what the plan's policy says about it.
	health *Health
	// countsFences says that the generation of a target counts a fence, as that of a Deployment does, and that
	// the controller of the target tells so in its status at once.
	countsFences bool
}

// newWorld has a target that drifted in every step; with gone they are not there,
// and are to be made again.
func newWorld(action v1alpha1.RemediationAction, batches [][]int32, gone bool) *world {
	first := ledger.Begin(epoch, true)
	w := &world{
		ledger: &first, records: map[int32]bool{}, now: epoch, effects: map[int32]int{}, uids: 100,
		health: &Health{Stabilization: 10 * time.Second, Timeout: 10 * time.Minute},
		plan:   &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plan", UID: "plan-uid", Generation: 1}},
	}
	planned := &w.plan.Spec.Plan
	planned.DeadlineTime = metav1.NewTime(epoch.Add(24 * time.Hour))
	planned.Requester = "platform"
	for order, steps := range batches {
		planned.Batches = append(planned.Batches, v1alpha1.PlanBatch{Order: int32(order), Steps: steps}) //nolint:gosec // few
		for _, i := range steps {
			o := &object{exists: true, uid: fmt.Sprint("uid-", i), version: 10, generation: 1, hash: driftedHash, ready: true}
			target := v1alpha1.PlanTarget{UID: o.uid, DriftedHash: driftedHash, DesiredHash: desiredHash, Action: action, Revision: "web-1"}
			if action == v1alpha1.ActionRestart || action == v1alpha1.ActionQuarantine {
				target.DesiredHash = driftedHash
			}
			if gone {
				o.exists, target.UID = false, ""
			}
			w.objects = append(w.objects, o)
			planned.Targets = append(planned.Targets, target)
		}
	}
	return w
}

// store writes a status, as a PUT with a resourceVersion does.
func (w *world) store(version int, status *v1alpha1.RemediationPlanStatus) bool {
	if version != w.version {
		return false
	}
	w.checkLattice(&w.plan.Status, status)
	w.plan.Status = *status.DeepCopy()
	w.version++
	return true
}

func (w *world) breaks(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

var stepOrder = []v1alpha1.StepState{
	v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied,
	v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced,
}

func (w *world) checkLattice(old, next *v1alpha1.RemediationPlanStatus) {
	if next.Epoch < old.Epoch {
		w.breaks("the epoch goes from %d to %d", old.Epoch, next.Epoch)
	}
	if Final(old.Phase) && next.Phase != old.Phase {
		w.breaks("a plan that ended as %s goes on as %s", old.Phase, next.Phase)
	}
	w.checkHistory(old, next)
	for i := range old.Steps {
		a, b := &old.Steps[i], &next.Steps[i]
		deferred := (a.State == v1alpha1.StepReserved || a.State == v1alpha1.StepIntent) && b.State == v1alpha1.StepPlanned
		if !deferred && slices.Index(stepOrder, b.State) < slices.Index(stepOrder, a.State) || ended(a) && a.State != b.State {
			w.breaks("step %d goes from %s to %s", i, a.State, b.State)
		}
		if ended(b) && !ended(a) {
			w.checkEnd(b)
		}
	}
}

// checkEnd: what a step says about its effect is so, and stays so.
func (w *world) checkEnd(step *v1alpha1.PlanStep) {
	switch {
	case step.State == v1alpha1.StepVerified && w.effects[step.Index] == 0 && step.Result.Origin == v1alpha1.ResultResponse:
		w.breaks("step %d is verified and wrote nothing", step.Index)
	case (step.State == v1alpha1.StepSkipped || step.State == v1alpha1.StepFenced) && w.effects[step.Index] > 0:
		w.breaks("step %d is %s and wrote", step.Index, step.State)
	}
}

// arrive is a write that reaches the API server.
func (w *world) arrive(r request) Write {
	o := w.objects[r.step]
	if r.action == v1alpha1.ActionQuarantine {
		return w.arriveAtBaseline(r, o)
	}
	if r.uid == "" {
		return w.arriveCreation(r, o)
	}
	switch {
	case w.forbidden:
		return Write{Result: Forbidden, Message: "no"}
	case !o.exists || o.uid != r.uid:
		return Write{Result: Gone}
	case strconv.Itoa(o.version) != r.version:
		return Write{Result: Conflicted}
	}
	o.version++
	if !r.fence {
		w.effect(r, o)
		return Write{Result: Stored, ResourceVersion: strconv.Itoa(o.version), Hash: o.hash}
	}
	if w.countsFences {
		o.generation++
	}
	answer := Write{Result: Stored, ResourceVersion: strconv.Itoa(o.version), Hash: o.hash, Generation: o.generation}
	if w.countsFences {
		o.version++
	}
	return answer
}

// arriveAtBaseline is a write of a Baseline, which asks nothing of the object.
func (w *world) arriveAtBaseline(r request, o *object) Write {
	switch {
	case w.forbidden:
		return Write{Result: Forbidden, Message: "no"}
	case strconv.Itoa(o.moved) != r.version:
		return Write{Result: Conflicted}
	}
	o.moved++
	if !r.fence {
		w.effect(r, o)
	}
	return Write{Result: Stored, ResourceVersion: strconv.Itoa(o.moved), Hash: driftedHash}
}

// assess is the assessor, which writes Baselines, and ends a quarantine.
func (w *world) assess(i int) {
	o := w.objects[i]
	o.moved++
	if o.quarantine != "" && (!o.exists || o.uid != o.of || o.hash != driftedHash) {
		o.quarantine, o.ended = "", o.quarantine
	}
}

// quarantineByOther has another plan take the Baseline, and its quarantine end.
func (w *world) quarantineByOther(i int) {
	if o := w.objects[i]; !o.held && o.quarantine == "" {
		o.moved += 4
		o.ended = "other"
	}
}

// arriveCreation makes an object, unless one is there. A request does not outlive
// its time-out.
func (w *world) arriveCreation(r request, o *object) Write {
	switch {
	case w.now.Sub(r.sent) > RequestTimeout:
		return Write{Result: Lost}
	case w.now.Truncate(time.Second).After(r.notAfter):
		return Write{Result: Forbidden, Message: "too late"}
	case w.forbidden:
		return Write{Result: Forbidden, Message: "no"}
	case o.exists:
		return Write{Result: Conflicted}
	}
	w.uids++
	*o = object{exists: true, uid: fmt.Sprint("uid-", w.uids), version: o.version + 1, hash: driftedHash}
	w.effect(r, o)
	return Write{Result: Stored, ResourceVersion: strconv.Itoa(o.version), Hash: o.hash}
}

// effect stores one, and looks at every promise about it.
func (w *world) effect(r request, o *object) {
	w.effects[r.step]++
	status := &w.plan.Status
	step := &status.Steps[r.step]
	entry := ledger.Find(w.ledger, ledger.Step{PlanUID: string(w.plan.UID), Step: r.step})
	switch {
	case w.effects[r.step] > 1:
		w.breaks("step %d takes effect %d times", r.step, w.effects[r.step])
	case step.Intent == nil || step.Intent.ResourceVersion != r.version:
		w.breaks("step %d takes effect without an intent of version %s", r.step, r.version)
	case ended(step):
		w.breaks("step %d takes effect after it ended as %s %s", r.step, step.State, step.Reason)
	case Final(status.Phase) || status.Phase == v1alpha1.PlanPaused:
		w.breaks("step %d takes effect although the plan is %s", r.step, status.Phase)
	case o.hash != driftedHash && r.action != v1alpha1.ActionQuarantine:
		w.breaks("step %d overwrites %s", r.step, o.hash)
	case entry == nil || entry.CompletionTime != nil:
		w.breaks("step %d takes effect without a place in the ledger", r.step)
	case w.plan.Spec.Plan.Strategy == v1alpha1.StrategyBlueGreen && r.uid != "" && !o.serves():
		w.breaks("step %d takes effect while its standby is %+v", r.step, o.standby)
	}
	if r.action == v1alpha1.ActionQuarantine {
		o.quarantine, o.of, o.held = r.token, r.uid, true
		return
	}
	o.generation++
	o.ready = false
	if r.action == v1alpha1.ActionRestart {
		o.token = r.token
		return
	}
	o.hash = desiredHash
}

// foreign is somebody else's write of the spec.
func (w *world) foreign(i int, hash string) {
	o := w.objects[i]
	if !o.exists {
		return
	}
	o.version++
	o.generation++
	o.hash = hash
}

// replace deletes a target, and makes another of its name.
func (w *world) replace(i int) {
	if !w.objects[i].exists {
		return
	}
	w.uids++
	before := w.objects[i]
	w.objects[i] = &object{exists: true, uid: fmt.Sprint("uid-", w.uids), version: before.version + 1, generation: 1, hash: driftedHash, ready: true, baseline: before.baseline, standby: before.standby}
}
