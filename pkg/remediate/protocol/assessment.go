// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// assessmentTimeout is how long a step waits for the assessor to look at a target that was
// changed before the step wrote it. A step that was written waits until its target has to be
// ready.
const assessmentTimeout = 10 * time.Second

// awaitAssessment waits, at most until a time, for the assessor to look at the state that was
// read; it returns nil when the assessor has, or the time is over. The assessor alone finds out
// whether an expected writer made the change. An autoscaler that scales a target while its pods
// roll has not moved the target.
func (s *State) awaitAssessment(t *Target, until time.Time) Effect {
	if !t.Unassessed || !s.Now.Before(until) {
		return nil
	}
	soon := s.Now.Add(poll)
	if until.Before(soon) {
		soon = until
	}
	return Wait{Until: soon, Why: "it changed, and the assessor has not looked at the change yet"}
}
