// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// Installation says which gates an installation carries out, and how large it makes clones.
type Installation struct {
	// Prometheus is there to answer queries.
	Prometheus bool
	// InlineQueries permits queries in the strategy of a release.
	InlineQueries bool
	// GateSecrets are the Secrets that webhooks may name.
	GateSecrets []string
	// HeadroomPercent is what a clone has beyond its part of the pods; [DefaultHeadroomPercent] if nil.
	HeadroomPercent *int
}

// permit refuses gates that nothing would ask: a run would wait for them forever.
func (has Installation) permit(r *v1alpha1.ABRelease, hasQueries bool) error {
	in := r.Spec.Rollout
	switch {
	case !hasQueries:
	case in.StrategyName == "" && !has.InlineQueries:
		return errors.New("spec.rollout.strategy.queries: the installation permits queries in RolloutStrategies alone: name a RolloutStrategy, or set delivery.inlineQueries in the values of the chart")
	case !has.Prometheus && in.StrategyName != "":
		return fmt.Errorf("spec.rollout.strategyName: RolloutStrategy %s has queries, and the installation has no Prometheus: set the chart value metrics.prometheus.url, or remove the queries", in.StrategyName)
	case !has.Prometheus:
		return errors.New("spec.rollout.strategy.queries: the installation has no Prometheus: set metrics.prometheus.url in the values of the chart, or remove the queries")
	}
	if in.Gates == nil {
		return nil
	}
	for i := range in.Gates.Webhooks {
		w := &in.Gates.Webhooks[i]
		for _, ref := range []struct{ field, name string }{{"destination", w.Destination.Name}, {"signingKey", w.SigningKey.Name}} {
			if !slices.Contains(has.GateSecrets, ref.name) {
				return fmt.Errorf("spec.rollout.gates.webhooks[%d].%s.name: gates may not read Secret %s: add the Secret to the chart value delivery.gateSecrets, or name another", i, ref.field, ref.name)
			}
		}
	}
	return nil
}

// WebhooksOf reads the webhooks of a release.
func WebhooksOf(r *v1alpha1.ABRelease) []gates.Webhook {
	if r.Spec.Rollout == nil || r.Spec.Rollout.Gates == nil {
		return nil
	}
	var out []gates.Webhook
	for i := range r.Spec.Rollout.Gates.Webhooks {
		w := &r.Spec.Rollout.Gates.Webhooks[i]
		out = append(out, gates.Webhook{Name: w.Name, Event: gates.Event(w.Event), Destination: gates.SecretKey(w.Destination), SigningKey: gates.SecretKey(w.SigningKey)})
	}
	return out
}

// SubjectOf describes the run of a release to gates.
func SubjectOf(r *v1alpha1.ABRelease, s State) gates.Subject {
	run := s.Run
	return gates.Subject{
		Names: gates.Names{Namespace: r.Namespace, Service: r.Spec.ServiceName, Release: r.Name, Canary: run.Canary, Stable: run.Active},
		UID:   string(r.UID), From: run.From.Hash, To: run.To.Hash, Reason: string(run.EndReason), Message: run.EndMessage,
	}
}

// defaultFailureLimit is that of the schema.
const defaultFailureLimit = 3

func readQueries(in []v1alpha1.RolloutQuery) []gates.Query {
	var out []gates.Query
	for i := range in {
		q := &in[i]
		out = append(out, gates.Query{Name: q.Name, PromQL: q.Query, Minimum: string(q.Minimum), Maximum: string(q.Maximum), FailureLimit: cmp.Or(int(q.FailureLimit), defaultFailureLimit)})
	}
	return out
}

func writeQueries(queries []gates.Query) []v1alpha1.RolloutQuery {
	var out []v1alpha1.RolloutQuery
	for i := range queries {
		q := &queries[i]
		out = append(out, v1alpha1.RolloutQuery{Name: q.Name, Query: q.PromQL, Minimum: v1alpha1.Decimal(q.Minimum), Maximum: v1alpha1.Decimal(q.Maximum), FailureLimit: int32(q.FailureLimit)}) //nolint:gosec // at most MaxFailureLimit
	}
	return out
}

func writeGates(states []gates.State) []v1alpha1.RolloutGateStatus {
	var out []v1alpha1.RolloutGateStatus
	for i := range states {
		s := &states[i]
		out = append(out, v1alpha1.RolloutGateStatus{
			Kind: v1alpha1.GateKind(s.Kind), Name: s.Name, Event: v1alpha1.GateEvent(s.Point.Event), Run: s.Point.Run,
			Stage: int32(s.Point.Stage), Restarts: int32(s.Point.Restart), //nolint:gosec // as those of a stage
			Result: v1alpha1.GateResult(s.Result), Value: s.Value, Failures: int32(s.Failures), AnswerTime: metav1.NewTime(s.Time), Message: s.Message, //nolint:gosec // at most MaxFailureLimit
		})
	}
	return out
}

func readGates(in []v1alpha1.RolloutGateStatus) []gates.State {
	var out []gates.State
	for i := range in {
		g := &in[i]
		out = append(out, gates.State{
			Key:    gates.Key{Kind: gates.Kind(g.Kind), Name: g.Name},
			Point:  gates.Point{Run: g.Run, Event: gates.Event(g.Event), Stage: int(g.Stage), Restart: int(g.Restarts)},
			Result: gates.Result(g.Result), Value: g.Value, Failures: int(g.Failures), Time: g.AnswerTime.Time, Message: g.Message,
		})
	}
	return out
}
