// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestTimeout bounds a write, at the client and at the API server.
const RequestTimeout = 10 * time.Second

// outlived is when a request that was intended can no longer be stored. The executor
// sends nothing after it may have lost its lease, and the API server ends a request
// after its time-out. It stands for a fence where there can be none: an object that
// is not there has no version to move, and one may be refused.
const outlived = time.Minute

// outwait waits until a request of before cannot arrive any more.
func (s *State) outwait(step *v1alpha1.PlanStep) Effect {
	until := step.Intent.At.Add(outlived)
	if s.Now.Before(until) {
		return Wait{Until: until, Why: "a request may still be under way"}
	}
	return nil
}
