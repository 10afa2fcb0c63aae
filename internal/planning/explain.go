// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// Explain says of every drift of the policy why it would be put back, or not, and
// when. namespace is Plumbline's own, where the ledgers are; one that reader may
// not read is told as unknown. caps are those of the whole cluster, nil when they
// are not known.
func (g *Gathered) Explain(ctx context.Context, reader client.Reader, namespace string, caps *ledger.Caps) []explain.Explanation {
	around := g.surroundings(ctx, reader, namespace, caps)
	out := make([]explain.Explanation, 0, len(g.Input.Drifts))
	for i := range g.Input.Drifts {
		out = append(out, explain.Of(&g.Input, &g.Input.Drifts[i], around))
	}
	return out
}

func (g *Gathered) surroundings(ctx context.Context, reader client.Reader, namespace string, caps *ledger.Caps) explain.Surroundings {
	cluster := readLedger(ctx, reader, namespace, exec.ClusterLedger)
	if cluster.CapsUnknown = caps == nil; caps != nil {
		cluster.Rules.All = *caps
	}
	own := readLedger(ctx, reader, namespace, g.Input.Policy.Spec.EnvironmentName)
	own.Rules.Policy = exec.PolicyLimits(&g.Input.Policy.Spec.Safety)
	if e := g.Environment; e != nil {
		own.Rules.All = ledger.Caps{Concurrent: e.Spec.Caps.MaxConcurrent, PerHour: e.Spec.Caps.MaxPerHour, PerDay: e.Spec.Caps.MaxPerDay}
		own.PastUnknown = e.Status.LedgerUID != ""
	}
	// That any Environment ever had a ledger says that there was one of the cluster.
	for i := range g.world.Environments {
		cluster.PastUnknown = cluster.PastUnknown || g.world.Environments[i].Status.LedgerUID != ""
	}
	return explain.Surroundings{Cluster: cluster, Environment: own}
}

func readLedger(ctx context.Context, reader client.Reader, namespace, name string) explain.Ledger {
	l := &v1alpha1.RemediationLedger{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, l)
	switch {
	case apierrors.IsNotFound(err):
		return explain.Ledger{Name: name, Known: true}
	case err != nil:
		return explain.Ledger{Name: name}
	}
	return explain.Ledger{Name: name, Known: true, Status: &l.Status, Halt: l.Spec.Halt}
}
