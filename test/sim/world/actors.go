// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

const (
	mergePatch  = "application/merge-patch+json"
	plain       = "application/json"
	plansPath   = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/remediationplans"
	ledgersPath = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespaceOfPlumbline + "/remediationledgers"
	policyPath  = "/apis/plumbline.dev/v1alpha1/remediationpolicies/" + policyName
)

// person is somebody who sends requests.
type person struct {
	*schedule.Life
	w      *World
	client http.Client
}

func (w *World) person(l *schedule.Life, user string) *person {
	return &person{l, w, http.Client{Transport: l.Transport(w.Server, user, schedule.Wire{})}}
}

// ask sends a request; nil is any failure.
func (p *person) ask(method, path, contentType string, body apiserver.Object) apiserver.Object {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			panic(err)
		}
	}
	request, err := http.NewRequestWithContext(p.Context(), method, "http://sim"+path, bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", contentType)
	answer, err := p.client.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	if raw, err = io.ReadAll(answer.Body); err != nil || answer.StatusCode >= http.StatusBadRequest {
		return nil
	}
	var out apiserver.Object
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// perhapsStale has any replica answer, however far behind it is.
func (p *person) perhapsStale() string { return pick(p.Rand(), "", "?resourceVersion=0") }

// controller makes Deployments do what their specs say, after a while.
func (w *World) controller(l *schedule.Life) {
	p := w.person(l, "system:serviceaccount:kube-system:deployment-controller")
	changed := w.watch(func(c apiserver.Commit) bool { return c.Resource.Resource == "deployments" && c.Subresource == "" })
	for {
		behind := false
		for _, t := range w.targets {
			o := w.Server.Look(t.gvk.Group, t.resource, namespace, t.name)
			if t.kind != &deployments || o == nil || observed(o) {
				continue
			}
			// One in ten rollouts takes longer than anybody waits.
			slow := !w.calm.Load() && l.Rand().IntN(10) == 0
			l.Sleep(time.Duration(l.Rand().Int64N(int64(8 * time.Second))))
			if slow {
				behind = true
				continue
			}
			if o = p.ask(http.MethodGet, t.at()+p.perhapsStale(), "", nil); o == nil {
				behind = true
				continue
			}
			ready(o)
			behind = p.ask(http.MethodPut, t.at()+"/status", plain, o) == nil || behind
		}
		patience := time.Hour
		if behind {
			patience = 10 * time.Second
		}
		l.Await(changed, patience)
	}
}

func observed(o apiserver.Object) bool {
	status, _ := o["status"].(map[string]any)
	return status["observedGeneration"] == o["metadata"].(map[string]any)["generation"]
}

// ready gives a Deployment the status of one that is rolled out.
func ready(o apiserver.Object) {
	replicas := o["spec"].(map[string]any)["replicas"]
	o["status"] = map[string]any{
		"observedGeneration": o["metadata"].(map[string]any)["generation"],
		"replicas":           replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}
}

// observer tells in the Baselines which state of each target it has seen, as the assessor does:
// mostly at once, and late one time in ten.
func (w *World) observer(l *schedule.Life) {
	p := w.person(l, "assessor")
	changed := w.watch(func(c apiserver.Commit) bool { return c.Subresource == "" && w.isTarget(c) })
	seen := map[string]string{}
	for {
		behind := false
		for _, t := range w.targets {
			if w.observedHash(t) == seen[t.baseline] {
				continue
			}
			late := 2 * time.Second
			if !w.calm.Load() && l.Rand().IntN(10) == 0 {
				late = 30 * time.Second
			}
			l.Sleep(time.Duration(l.Rand().Int64N(int64(late))))
			hash := w.observedHash(t)
			path := "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/baselines/" + t.baseline + "/status"
			status := apiserver.Object{"status": map[string]any{"observed": map[string]any{"hash": hash}}}
			if p.ask(http.MethodPatch, path, mergePatch, status) == nil {
				behind = true
				continue
			}
			seen[t.baseline] = hash
		}
		patience := time.Hour
		if behind {
			patience = 10 * time.Second
		}
		l.Await(changed, patience)
	}
}

// observedHash is the guarded hash of a target as it is.
func (w *World) observedHash(t *target) string {
	o := w.Server.Look(t.gvk.Group, t.resource, namespace, t.name)
	if o == nil {
		return specguard.HashAbsent
	}
	spec, _ := o["spec"].(map[string]any)
	return w.hashOf(t, spec)
}

// isTarget says of a write whether it is one of a target.
func (w *World) isTarget(c apiserver.Commit) bool {
	return slices.ContainsFunc(w.targets, func(t *target) bool {
		return c.Resource.Resource == t.resource && c.Name == t.name
	})
}

// meddler does something a few times, each after some writes of anybody, or as
// soon as a step is about to write: so it comes between any two of them.
//
// One who is eager acts earlier, and also as soon as a step has a place.
func (w *World) meddler(d disturbance) func(*schedule.Life) {
	return func(l *schedule.Life) {
		p, do := w.person(l, d.user), d.do
		anything := w.watch(func(apiserver.Commit) bool { return true })
		intents, grants := w.watch(inState("Intent")), w.watch(grantsPlace)
		for range 1 + l.Rand().IntN(3) {
			switch {
			case d.atIntents || l.Rand().IntN(2) == 0:
				l.Await(intents, time.Hour)
			case d.eager && l.Rand().IntN(2) == 0:
				l.Await(grants, time.Hour)
			default:
				most := 40
				if d.eager {
					most = 10
				}
				for range l.Rand().IntN(most) {
					l.Await(anything, time.Minute)
				}
			}
			if w.calm.Load() {
				return
			}
			do(p)
		}
	}
}

// grantsPlace says of a write whether the ledger of the Environment grants a place with it.
func grantsPlace(c apiserver.Commit) bool {
	return c.Resource.Resource == "remediationledgers" && c.Name == environment && c.Before != nil && c.After != nil &&
		openEntries(c.After) > openEntries(c.Before)
}

// openEntries counts the places that a ledger has granted and that have not ended.
func openEntries(l apiserver.Object) int {
	n := 0
	status, _ := l["status"].(map[string]any)
	entries, _ := status["entries"].([]any)
	for _, entry := range entries {
		if entry.(map[string]any)["completionTime"] == nil {
			n++
		}
	}
	return n
}

// inState says of a write whether a step of a plan has a state with it.
func inState(state string) func(apiserver.Commit) bool {
	return func(c apiserver.Commit) bool {
		if c.Resource.Resource != "remediationplans" || c.After == nil {
			return false
		}
		status, _ := c.After["status"].(map[string]any)
		steps, _ := status["steps"].([]any)
		for _, step := range steps {
			if step.(map[string]any)["state"] == state {
				return true
			}
		}
		return false
	}
}

// disturbances are all that can happen beside messages, by name.
func disturbances() []disturbance {
	return []disturbance{
		disturber("foreign", "mallory", (*person).changes), disturber("bot", "bot", (*person).putsBack), disturber("churn", "mallory", (*person).churns),
		disturber("replacer", "mallory", (*person).replaces), disturber("canceler", "alice", (*person).controls), disturber("second-canceler", "alice", (*person).controls),
		disturber("halter", "alice", (*person).halts), disturber("assessor", "assessor", (*person).assesses), disturber("rights", "root", (*person).revokes),
	}
}

// rare are those that end most of a run, or make it long.
func rare() []disturbance {
	return []disturbance{
		disturber("damager", "root", (*person).damages), disturber("eraser", "root", (*person).erasesLedger), disturber("plan-eraser", "root", (*person).erasesPlan),
		disturber("namespace-eraser", "root", (*person).erasesNamespace),
	}
}

type disturbance struct {
	name, user string
	do         func(*person)
	// eager is one who acts early, atIntents one who acts only when a step is about to write.
	eager, atIntents bool
}

// disturber is one who acts a few times.
func disturber(name, user string, do func(*person)) disturbance {
	return disturbance{name: name, user: user, do: do}
}

// eager is one who acts early.
func eager(name, user string, do func(*person)) disturbance {
	return disturbance{name: name, user: user, do: do, eager: true}
}

// somePlan is the name of a plan; empty while there is none.
func (p *person) somePlan() string {
	names := p.w.plans.names()
	if len(names) == 0 {
		return ""
	}
	return names[p.Rand().IntN(len(names))]
}

// controlsPlan sets what a person wants of a plan.
func (p *person) controlsPlan(plan string, control map[string]any) {
	if plan != "" {
		p.ask(http.MethodPatch, plansPath+"/"+plan, mergePatch, apiserver.Object{"spec": map[string]any{"control": control}})
	}
}

func (p *person) some() *target { return p.w.targets[p.Rand().IntN(len(p.w.targets))] }

// changes a spec.
func (p *person) changes() {
	t := p.some()
	spec := pick(p.Rand(), t.desired, t.drifted, t.other)
	if o := p.ask(http.MethodGet, t.at()+p.perhapsStale(), "", nil); o != nil {
		o["spec"] = spec
		p.ask(http.MethodPut, t.at(), plain, o)
	}
}

// putsBack what it was, as a bot does that knows nothing better.
func (p *person) putsBack() {
	t := p.some()
	p.ask(http.MethodPatch, t.at(), mergePatch, apiserver.Object{"spec": t.drifted})
}

// restores what is authorized, before an executor does.
func (p *person) restores() {
	t := p.some()
	p.ask(http.MethodPatch, t.at(), mergePatch, apiserver.Object{"spec": t.desired})
}

// churns about what moves no spec.
func (p *person) churns() {
	mark := map[string]any{"touched": time.Now().Format("150405.000")}
	change := apiserver.Object{"metadata": map[string]any{"labels": mark}}
	if p.Rand().IntN(2) == 0 {
		change = apiserver.Object{"metadata": map[string]any{"annotations": mark}}
	}
	p.ask(http.MethodPatch, p.some().at(), mergePatch, change)
}

// replaces a target by another of its name.
func (p *person) replaces() {
	t := p.some()
	p.ask(http.MethodDelete, t.at(), plain, nil)
	if p.Rand().IntN(4) > 0 {
		p.ask(http.MethodPost, t.path, plain, t.object(t.name, t.drifted))
	}
}

// controls a plan.
func (p *person) controls() {
	control := map[string]any{"verb": pick[any](p.Rand(), "Pause", "Pause", "Cancel", "Execute", nil), "requestedBy": "alice"}
	p.controlsPlan(p.somePlan(), control)
}

// halts the policy, or everything.
func (p *person) halts() {
	switch p.Rand().IntN(3) {
	case 0:
		p.ask(http.MethodPatch, policyPath, mergePatch, apiserver.Object{"spec": map[string]any{"mode": "Halted"}})
	case 1:
		p.haltsLedger()
	}
}

// assesses what is there, and writes Baselines as the assessor does.
func (p *person) assesses() {
	status := map[string]any{"lastCheck": time.Now().UTC().Format(time.RFC3339)}
	path := "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/baselines/" + p.some().baseline + "/status"
	p.ask(http.MethodPatch, path, mergePatch, apiserver.Object{"status": status})
}

// revokes a right, and gives it back.
func (p *person) revokes() {
	right := &p.w.denied
	if p.Rand().IntN(2) == 0 {
		right = &p.w.forbidden
	}
	right.Store(true)
	defer right.Store(false)
	p.Sleep(time.Duration(p.Rand().Int64N(int64(30 * time.Second))))
}

// forbids the executor its next write, for a moment: the answer is a refusal, and
// whoever repeats the request may repeat it when it is none any more.
func (p *person) forbids() {
	p.w.forbidden.Store(true)
	defer p.w.forbidden.Store(false)
	p.Sleep(time.Duration(p.Rand().Int64N(int64(2 * time.Second))))
}

// damages what was authorized.
func (p *person) damages() {
	path := "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/baselinerevisions/" + p.some().revision
	p.ask(http.MethodPatch, path, mergePatch, apiserver.Object{"spec": map[string]any{"body": "AAAA"}})
}

func (p *person) erasesLedger() {
	p.ask(http.MethodDelete, ledgersPath+"/"+pick(p.Rand(), ledgerNames...), plain, nil)
}

func (p *person) erasesPlan() {
	if plan := p.somePlan(); plan != "" {
		p.ask(http.MethodDelete, plansPath+"/"+plan, plain, nil)
	}
}

func (p *person) erasesNamespace() {
	p.ask(http.MethodDelete, "/api/v1/namespaces/"+namespace, plain, nil)
}

// ledgerNames are the two ledgers.
var ledgerNames = []string{"plumbline-cluster", environment}
