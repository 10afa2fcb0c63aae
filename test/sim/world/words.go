// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

const (
	baselinesPath = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/baselines/"
	revisionsPath = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/baselinerevisions"
)

// accepts what drifted.
func (p *person) accepts() {
	t := p.some()
	accept := map[string]any{"hash": t.driftedHash, "requestedBy": "alice"}
	p.ask(http.MethodPatch, baselinesPath+t.baseline, mergePatch, apiserver.Object{"spec": map[string]any{"accept": accept}})
	p.w.count("accept")
}

// authorizes another state, as the assessor does for an apply of CI or an accept. After a
// while the assessor has seen the new state ready.
func (p *person) authorizes() {
	t := p.some()
	state := p.w.another(t)
	o := p.ask(http.MethodGet, baselinesPath+t.baseline, "", nil)
	if o == nil {
		return
	}
	b := typed[v1alpha1.Baseline](o)
	b.Spec.Authorized, b.Spec.Accept = state, nil
	if p.ask(http.MethodPut, baselinesPath+t.baseline, plain, object(b)) == nil {
		return
	}
	p.w.count("authorization while a plan runs")
	ready := map[string]any{"revision": state.Revision, "hash": state.Hash, "readyTime": p.w.epoch.UTC().Format(time.RFC3339)}
	p.ask(http.MethodPatch, baselinesPath+t.baseline+"/status", mergePatch, apiserver.Object{"status": map[string]any{"lastReady": ready}})
}

// another authorized state of a target: its revision is stored before anybody needs it.
func (w *World) another(t *target) *v1alpha1.AuthorizedState {
	return &v1alpha1.AuthorizedState{
		UID: string(t.uid), Hash: w.hashOf(t, t.other), Revision: t.later, Number: laterNumber,
		By: "ci", AuthorizationTime: metav1.NewTime(w.epoch), Origin: v1alpha1.OriginCreated,
	}
}

// cancels a plan.
func (p *person) cancels() {
	control := map[string]any{"verb": "Cancel", "requestedBy": "alice"}
	p.controlsPlan(p.somePlan(), control)
}

// haltsLedger halts everything in one of the ledgers.
func (p *person) haltsLedger() {
	halt := map[string]any{"requestedBy": "alice", "reason": "stop"}
	p.ask(http.MethodPatch, ledgersPath+"/"+pick(p.Rand(), ledgerNames...), mergePatch, apiserver.Object{"spec": map[string]any{"halt": halt}})
}

// pausesLong pauses a plan for up to half an hour.
func (p *person) pausesLong() {
	plan := p.somePlan()
	control := func(verb any) {
		p.controlsPlan(plan, map[string]any{"verb": verb, "requestedBy": "alice"})
	}
	p.w.count("long pause")
	control("Pause")
	p.Sleep(10*time.Minute + time.Duration(p.Rand().Int64N(int64(20*time.Minute))))
	control(pick[any](p.Rand(), "Execute", nil))
}

// healthOf is a patch of a policy's status with the count of the other objects.
func healthOf(policy apiserver.Object, healthy, unhealthy int) apiserver.Object {
	digest := planner.Digest(&typed[v1alpha1.RemediationPolicy](policy).Spec)
	return apiserver.Object{"status": map[string]any{"digest": digest, "targets": map[string]any{"healthy": healthy, "unhealthy": unhealthy}}}
}

// relent takes back all that keeps plans from their end, once everything is calm.
func (w *World) relent() {
	w.denied.Store(false)
	w.forbidden.Store(false)
	w.blind.Store(nil)
	w.broken.Store(false)
	w.resume()
	if w.plansItself {
		w.restart()
		w.mends()
	} else {
		w.heal()
	}
	w.thaw()
	w.completeRuns()
}

// restart takes back the halts of the ledgers: a policy makes plans while they last, each of
// which ends at once.
func (w *World) restart() {
	for _, name := range ledgerNames {
		l := w.Server.Look(group, "remediationledgers", namespaceOfPlumbline, name)
		if spec, _ := l["spec"].(map[string]any); spec["halt"] != nil {
			w.direct(ledgersPath+"/"+name, apiserver.Object{"spec": map[string]any{"halt": nil}})
		}
	}
}

// heal says that all other objects are healthy, where the last count says otherwise.
func (w *World) heal() {
	o := w.Server.Look(group, "remediationpolicies", "", policyName)
	if o == nil || typedOf[v1alpha1.RemediationPolicy](w, o).Status.Targets.Unhealthy == 0 {
		return
	}
	w.direct(policyPath+"/status", healthOf(o, 4, 0))
}

// resume takes back what pauses a plan, and executes one that waits for a person; somebody
// may have asked for a pause at the last moment.
func (w *World) resume() {
	for _, name := range w.plans.names() {
		now := w.Server.Look(group, "remediationplans", namespace, name)
		if now == nil {
			continue
		}
		plan := typedOf[v1alpha1.RemediationPlan](w, now)
		switch verb := plan.Spec.Control.Verb; {
		case verb == v1alpha1.PlanPause:
			w.direct(plansPath+"/"+name, apiserver.Object{"spec": map[string]any{"control": map[string]any{"verb": nil}}})
		case verb == "" && plan.Spec.Plan.Trigger == v1alpha1.TriggerManual && !final(now):
			w.direct(plansPath+"/"+name, apiserver.Object{"spec": map[string]any{"control": map[string]any{"verb": "Execute", "requestedBy": "alice"}}})
		}
	}
}

// direct sends a merge patch that nothing disturbs.
func (w *World) direct(path string, body apiserver.Object) {
	w.Server.Do(apiserver.Request{User: "alice", Client: "alice", Method: http.MethodPatch, Path: path, ContentType: mergePatch, Body: encode(body)})
}
