// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// workloads returns what the run needs of the executor and of the stable variation. A run whose canary is no
// clone needs of the executor what the run has asked for, and nothing of the stable variation.
func (g *gates) workloads() []Gate {
	if g.run.Clone == nil && len(g.in.Works) == 0 {
		return nil
	}
	all := []Gate{g.works()}
	if g.run.Clone != nil && g.run.State == "Promoting" {
		all = append(all, g.baseline())
	}
	return all
}

func (g *gates) works() Gate {
	const name = "Works"
	switch {
	case g.waits(rollout.WaitWork):
		return g.held(name, "the executor has to carry the work out: kubectl get releaseworks -n "+g.Release.Namespace)
	case g.waits(rollout.WaitTrust):
		return g.held(name, "add the author to spec.trustedWriters of the guard, or let a user that the guard trusts change the release")
	case g.waits(rollout.WaitRefusedWork):
		return g.held(name, "remove the cause, and ask for Retry, or ask for Rollback")
	case len(g.in.Works) == 0:
		return Gate{name, GateUnknown, "the executor has no work yet", ""}
	}
	w := &g.in.Works[len(g.in.Works)-1]
	value := fmt.Sprintf("work %d, %s, is %s", w.Number, w.Verb, w.Phase)
	if w.Replicas != nil {
		value = fmt.Sprintf("work %d, %s to %d, is %s", w.Number, w.Verb, *w.Replicas, w.Phase)
	}
	if w.Phase == "Succeeded" {
		return Gate{name, GateOK, value, ""}
	}
	if w.Message != "" {
		value += ": " + w.Message
	}
	return Gate{name, GateUnknown, value, "the next stage needs the work"}
}

func (g *gates) baseline() Gate {
	const name = "Baseline"
	switch {
	case g.waits(rollout.WaitBaseline):
		return g.held(name, "make the change where the workload is kept, such as in Git; or ask for Rollback")
	case g.waits(rollout.WaitBaselinePods):
		return g.held(name, "the pods have to become ready")
	case g.run.Clone.Changed == nil:
		return Gate{name, GateUnknown, fmt.Sprintf("%s does not have the change yet", g.run.From.Variation), ""}
	}
	return Gate{name, GateOK, fmt.Sprintf("%s has the change", g.run.From.Variation), ""}
}
