// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Obstacle is why an object is not checked now.
type Obstacle string

// The obstacles.
const (
	// ObstacleNone: it may be checked.
	ObstacleNone Obstacle = ""
	// ObstacleOff: it has no scheduled checks.
	ObstacleOff Obstacle = "Off"
	// ObstacleNotDue: its time has not come.
	ObstacleNotDue Obstacle = "NotDue"
	// ObstacleNotGuarded: it was removed by somebody who may, or no guard selects
	// it any more.
	ObstacleNotGuarded Obstacle = "NotGuarded"
	// ObstacleLagging: the Baseline has a wish that was not answered yet, or the
	// watch delivered a change that was not judged yet.
	ObstacleLagging Obstacle = "Lagging"
	// ObstacleDeleting: it waits for its finalizers to be gone.
	ObstacleDeleting Obstacle = "Deleting"
	// ObstacleClaimed: a RemediationPlan holds it.
	ObstacleClaimed Obstacle = "Claimed"
	// ObstacleContended: two writers keep undoing each other.
	ObstacleContended Obstacle = "Contended"
	// ObstacleBodyLost: there is nothing to compare it with until somebody
	// accepts what runs.
	ObstacleBodyLost Obstacle = "BodyLost"
	// ObstacleStateUnknown: it was never judged, or cannot be read.
	ObstacleStateUnknown Obstacle = "StateUnknown"
	// ObstacleThreshold: as much is checked and repaired as the installation lets.
	ObstacleThreshold Obstacle = "Threshold"
	// ObstacleEnvironmentThreshold: the same for its Environment.
	ObstacleEnvironmentThreshold Obstacle = "EnvironmentThreshold"
)

// Settled tells whether nothing else is going on with an object, so that a check
// of it says something: ObstacleNone, or the first of NotGuarded, Lagging,
// Claimed, Contended, BodyLost and StateUnknown that holds. Drift that was found
// is no obstacle, nor is an object that is missing: what is found once is looked
// at again.
//
// What a Baseline does not know is the caller's: changes that wait to be judged
// (Lagging), a deletion under way (Deleting), and whether the plan that claims the
// object still goes on.
//
// failures counts its checks that failed in a row. Such a failure may itself be
// why the state is unknown, so it is no obstacle then: one failed read must not
// end the checks of an object.
func Settled(b *v1alpha1.Baseline, failures int) Obstacle {
	status := &b.Status
	switch {
	case !b.Guarded():
		return ObstacleNotGuarded
	case status.ObservedGeneration != b.Generation:
		return ObstacleLagging
	case status.PlanName != "":
		return ObstacleClaimed
	case status.Contention != nil, v1alpha1.IsDegradedFor(status.Conditions, v1alpha1.ReasonContended):
		return ObstacleContended
	case bodyLost(status):
		return ObstacleBodyLost
	case !known(status.State) && failures <= 0:
		return ObstacleStateUnknown
	default:
		return ObstacleNone
	}
}

func bodyLost(status *v1alpha1.BaselineStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	return status.State == v1alpha1.StateUnknown && ready != nil && ready.Reason == v1alpha1.ReasonBodyLost
}

func known(state v1alpha1.DriftState) bool {
	switch state {
	case v1alpha1.StateInSync, v1alpha1.StateDrifted, v1alpha1.StateMissing:
		return true
	case v1alpha1.StateUnknown, v1alpha1.StateRetired, v1alpha1.StateNotGuarded:
		return false
	default:
		return false
	}
}
