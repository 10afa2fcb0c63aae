// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// Counts of the requests of an arm. A request counts once, in the worker that took it.
type Counts struct {
	// Answered have an answer, those of HAProxy itself included; Failed are 5xx and ClientErrors 4xx of
	// them.
	Answered, Failed, ClientErrors uint64
	// FailedOver are those of Answered that endpoints of the stable variation answered.
	FailedOver uint64
	// GivenUp are those that their client ended before the answer.
	GivenUp uint64
}

// Worker is a process of HAProxy that counts from 0 on.
type Worker struct {
	PID int
	// Uptime tells a worker from a later one with its PID.
	Uptime time.Duration
}

// Snapshot is what a worker has counted at one moment.
type Snapshot struct {
	Worker Worker
	Arms   map[envoyname.Slot]Counts
	// InFlight are requests that have no answer yet.
	InFlight map[envoyname.Slot]uint64
}

// Since returns what was counted after another snapshot. Counters begin again from 0 in another worker,
// and where somebody has cleared them: then all that they have is new. What a worker has counted after
// its last snapshot is lost with it.
func (s Snapshot) Since(before Snapshot) map[envoyname.Slot]Counts {
	same := s.Worker.PID == before.Worker.PID && s.Worker.Uptime >= before.Worker.Uptime
	counted := map[envoyname.Slot]Counts{}
	for arm, now := range s.Arms {
		was := before.Arms[arm]
		if !same || now.isBelow(was) {
			was = Counts{}
		}
		counted[arm] = Counts{
			now.Answered - was.Answered, now.Failed - was.Failed, now.ClientErrors - was.ClientErrors,
			now.FailedOver - was.FailedOver, now.GivenUp - was.GivenUp,
		}
	}
	return counted
}

// isBelow tells whether a counter is lower, which a counter becomes by a restart alone.
func (c Counts) isBelow(was Counts) bool {
	return c.Answered < was.Answered || c.Failed < was.Failed || c.ClientErrors < was.ClientErrors ||
		c.FailedOver < was.FailedOver || c.GivenUp < was.GivenUp
}
