// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/gatekeeper"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Gates asks the gates of runs beside the decisions, so that no receiver delays a rollback.
type Gates interface {
	// Answers are the last ones of the gates of a release.
	Answers(release types.NamespacedName, uid string) []gates.Answer
	// Ask does not wait. It returns how soon the release is to be looked at again; 0 if nothing is asked.
	Ask(visit gatekeeper.Visit) time.Duration
	// Forget drops the memory of a release that is gone.
	Forget(release types.NamespacedName)
}

// gateAnswers are facts of the decision.
func (r *Reconciler) gateAnswers(s *subject) []gates.Answer {
	if r.Gates == nil {
		return nil
	}
	return r.Gates.Answers(client.ObjectKeyFromObject(s.release), string(s.release.UID))
}

// askGates has the gates asked that the run is at now. A later look takes the answers.
func (r *Reconciler) askGates(_ context.Context, s *subject) error {
	if r.Gates == nil || s.release.Spec.Rollout == nil || s.rollout == nil || s.rollout.After.Run == nil {
		return nil
	}
	state, webhooks := s.rollout.After, rollout.WebhooksOf(s.release)
	s.gatesAgain = r.Gates.Ask(gatekeeper.Visit{
		Subject: rollout.SubjectOf(s.release, state), Set: gates.Set{Queries: state.Run.Strategy.Queries, Webhooks: webhooks},
		Questions: state.Questions(webhooks, s.now), Interval: state.Run.Strategy.Interval,
	})
	return nil
}

// forgetGates drops the memory of a release that is gone.
func (r *Reconciler) forgetGates(release types.NamespacedName) {
	if r.Gates != nil {
		r.Gates.Forget(release)
	}
}
