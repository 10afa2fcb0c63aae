// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestTimeout bounds a write, at the client and at the API server.
const RequestTimeout = 10 * time.Second

// outlived is when a creation that was intended can no longer be stored: an
// object that is not there has no version that a fence could move. The executor
// sends nothing after it may have lost its lease, and the API server ends a
// request after its time-out.
const outlived = time.Minute

// outwait waits until a creation of before cannot arrive any more.
func (s *State) outwait(step *v1alpha1.PlanStep) Effect {
	until := step.Intent.At.Add(outlived)
	if s.Now.Before(until) {
		return Wait{Until: until, Why: "a creation may still be under way"}
	}
	return nil
}
