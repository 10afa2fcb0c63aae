// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Cluster is the cluster that an explanation reads.
type Cluster struct {
	client.Reader
	Mapper meta.RESTMapper
	// System is Plumbline's own namespace, which has the ledgers and is never guarded; the
	// usual one when empty.
	System string
}

// Question is a question of a person about policies.
type Question struct {
	Policies []v1alpha1.RemediationPolicy
	// Objects that were named; none for each drift of the namespace.
	Objects []v1alpha1.Baseline
	// Namespace of the drifts; empty for all namespaces.
	Namespace string
}

// Policy explains the drifts of one policy.
type Policy struct {
	Name string
	// Problems of the policy that the schema does not see; with any it makes no plans, and
	// no drift is explained.
	Problems field.ErrorList
	Drifts   []explain.Explanation
}

// ExplainPolicies explains each drift that the question is about, policy by policy. now is
// the API server's time. With an error it still returns the policies before the one that
// could not be gathered.
func ExplainPolicies(ctx context.Context, c Cluster, q *Question, now func() time.Time) ([]Policy, error) {
	system := cmp.Or(c.System, actions.SystemNamespace)
	src := &planning.Once{Source: &planning.Live{Reader: c, Mapper: c.Mapper, Excluded: specguard.ExcludedNamespaces(system)}}
	var explained []Policy
	for i := range q.Policies {
		p := &q.Policies[i]
		gathered, err := planning.Gather(ctx, src, planning.Question{Policy: p, InitiatedBy: planner.InitiatedByItself, Now: now()})
		if err != nil {
			return explained, err
		}
		policy := Policy{Name: p.Name, Problems: gathered.Problems}
		if len(policy.Problems) == 0 {
			policy.Drifts = slices.DeleteFunc(gathered.Explain(ctx, c, system, nil), func(e explain.Explanation) bool {
				return !q.selects(e.Namespace, e.Baseline)
			})
		}
		explained = append(explained, policy)
	}
	return explained, nil
}

// selects says whether the question is about the drift of a Baseline.
func (q *Question) selects(namespace, baseline string) bool {
	if len(q.Objects) == 0 {
		return q.Namespace == metav1.NamespaceAll || q.Namespace == namespace
	}
	return slices.ContainsFunc(q.Objects, func(b v1alpha1.Baseline) bool { return b.Namespace == namespace && b.Name == baseline })
}
