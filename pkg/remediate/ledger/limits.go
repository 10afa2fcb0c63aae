// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"
)

// Caps bound what is granted; a nil cap is none, and one of 0 allows nothing.
type Caps struct {
	// Concurrent steps that have not ended.
	Concurrent *int32
	// PerHour and PerDay bound the steps of any hour, and of any 24 hours.
	PerHour, PerDay *int32
}

// Limits of one policy.
type Limits struct {
	Caps
	// Cooldown between the end of a step and the next one of the policy, and of
	// any policy on the same target.
	Cooldown time.Duration
	// FailureThreshold is how many failures in a row open the breaker; 0 is never.
	FailureThreshold int32
	// OpenDuration is how long it stays open before one step is tried.
	OpenDuration time.Duration
	// VerdictTimeout is how long after the end of a step a breaker waits for the verdict on the
	// effect of that step; 0 where no effect is assessed, and then the end of the step decides.
	VerdictTimeout time.Duration
}

// Request asks to let a step write.
type Request struct {
	Step      Step
	PolicyUID string
	// TargetUID is the uid of the object the step writes, or what stands for it
	// when it is to be made.
	TargetUID string
	// Epoch of the plan, which counts the executors that took the plan over.
	Epoch int64
}

// Rules are the limits that one request is held against.
type Rules struct {
	// Policy holds the limits of the request's policy; zero in the ledger of the
	// whole cluster, which knows no policies.
	Policy Limits
	// All bounds everything in this ledger together.
	All Caps
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
	// maxEntries, maxBreakers, maxFailures and maxVerdictTimeout, in seconds, are the schema's bounds.
	maxEntries  = 1024
	maxBreakers = 256
	maxFailures = 1_000_000

	maxVerdictTimeout = 1_000_000
)
