// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

const guardPath = "/apis/plumbline.dev/v1alpha1/clusterspecguards/" + guardName

// seesFight has the assessor see for a while that writers fight over a target.
func (p *person) seesFight() {
	path := baselinesPath + p.some().baseline + "/status"
	since := time.Now().UTC().Format(time.RFC3339)
	p.w.count("fight over a target")
	p.forAWhile(5*time.Minute, func() {
		p.ask(http.MethodPatch, path, mergePatch, contention(map[string]any{"startTime": since, "with": []any{"mallory", "bot"}}))
	}, func() { p.ask(http.MethodPatch, path, mergePatch, contention(nil)) })
}

// contention is a patch of the status of a Baseline; nil ends a fight.
func contention(fight any) apiserver.Object {
	return apiserver.Object{"status": map[string]any{"contention": fight}}
}

// seesMassDrift has the assessor see a mass drift for a while: of all, of a namespace, by a
// cause, or one that holds none of the targets.
func (p *person) seesMassDrift() {
	since := time.Now().UTC().Format(time.RFC3339)
	scope := pick(p.Rand(),
		map[string]any{"everythingStartTime": since},
		map[string]any{"namespaces": []any{map[string]any{"name": namespace, "startTime": since}}},
		map[string]any{"causes": []any{map[string]any{"path": "/spec", "startTime": since}}},
		map[string]any{"namespaces": []any{map[string]any{"name": "bank", "startTime": since}}},
	)
	p.w.count("mass drift")
	p.forAWhile(5*time.Minute, func() {
		p.ask(http.MethodPatch, guardPath+"/status", mergePatch, massDrift(scope))
	}, func() { p.ask(http.MethodPatch, guardPath+"/status", mergePatch, massDrift(nil)) })
}

// massDrift is a patch of the status of a guard; nil ends a mass drift.
func massDrift(scope any) apiserver.Object {
	return apiserver.Object{"status": map[string]any{"massDrift": scope}}
}

// thaw ends what the assessor has seen, where an answer of its last request was lost.
func (w *World) thaw() {
	guard := w.Server.Look(group, "clusterspecguards", "", guardName)
	if guard != nil && !w.plansItself && typedOf[v1alpha1.ClusterSpecGuard](w, guard).Status.MassDrift != nil {
		w.direct(guardPath+"/status", massDrift(nil))
	}
	if w.plansItself {
		return // the assessor ends fights
	}
	for _, t := range w.targets {
		b := w.Server.Look(group, "baselines", namespace, t.baseline)
		if b != nil && typedOf[v1alpha1.Baseline](w, b).Status.Contention != nil {
			w.direct(baselinesPath+t.baseline+"/status", contention(nil))
		}
	}
}

// peaceful takes the fight out of a Baseline that was read. The write of a claim stores what was
// read before it, and would end the fight.
func peaceful(o client.Object) {
	if b, ok := o.(*v1alpha1.Baseline); ok && b.Status.PlanName != "" {
		b.Status.Contention = nil
	}
}

// thawed are guards that see no mass drift.
type thawed struct{ exec.Guards }

// Read implements exec.Guards.
func (g thawed) Read(ctx context.Context, from client.Reader) (exec.GuardView, error) {
	view, err := g.Guards.Read(ctx, from)
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands for them
	}
	return thawedView{view}, nil
}

type thawedView struct{ exec.GuardView }

// Frozen implements exec.GuardView.
func (thawedView) Frozen(string, *v1alpha1.PlanTarget) string { return "" }
