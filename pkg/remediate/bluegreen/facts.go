// SPDX-License-Identifier: Apache-2.0

package bluegreen

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Input is everything a decision depends on.
type Input struct {
	// Stored is the standby as the status of the step tells of it; nil before the first one.
	Stored *v1alpha1.StepStandby
	// Seen is what was read; nil before it was.
	Seen *Seen
	// Acted is what came of the act of the last decision; nil without one.
	Acted *Acted
	// Evidence names the record of the Deployment, once this run has written it.
	Evidence *v1alpha1.StepEvidence
	Now      time.Time
	// TimeUnknown says that Now is not the time of the API server.
	TimeUnknown bool
	// Timeout bounds each phase on the way to the standby.
	Timeout time.Duration
	// Creatable is how long after its intent the API server admits a creation, and Outlived how long
	// after it no creation can be stored any more.
	Creatable, Outlived time.Duration
	// Name is that of a standby with a number.
	Name func(number int32) string
}

// Seen is what was read of a standby, and of what it stands in for.
type Seen struct {
	// Known says that all of it could be read, and Why why it could not.
	Known bool
	Why   string
	// Obstacle says why no standby can answer the requests of the target; empty when one can.
	Obstacle string
	// ServiceName is the one Service that the target is behind.
	ServiceName string
	// Replicas are those of the repaired target.
	Replicas int32
	Target   Workload
	Standby  Workload
	Release  Release
}

// Workload is what was read of a Deployment.
type Workload struct {
	Exists bool
	// Foreign says that the Deployment is no standby of this step.
	Foreign bool
	// Ready says that all pods are as the spec says and ready, and Why what is missing.
	Ready bool
	Why   string
	// ReadyReplicas are pods that answer.
	ReadyReplicas int32
}

// Release is what was read of the ABRelease of a standby.
type Release struct {
	Exists bool
	// Foreign says that the ABRelease is none of this step.
	Foreign bool
	// Ending says that it is being deleted.
	Ending bool
	// ToStandby says that its spec gives requests to the standby.
	ToStandby bool
	// InForce says that all proxies have acknowledged what the spec says, and Why what is missing.
	InForce bool
	Why     string
	// NoProxies says that no proxy is there that could acknowledge it.
	NoProxies bool
	// InFlight are requests that the standby has not answered.
	InFlight int64
}

// Acted is what came of an act.
type Acted struct {
	// Refused says why the API server will not store it; empty when it may.
	Refused string
	// Lost says that it is not known whether it is stored.
	Lost bool
}

// Act is what is to be done in the cluster, or asked of it.
type Act string

// The acts.
const (
	// Read the ABRelease, both Deployments, and what proxies serve.
	Read Act = "Read"
	// MakeRelease makes the ABRelease, which leaves all requests where they are.
	MakeRelease Act = "MakeRelease"
	// MakeStandby makes the Deployment.
	MakeStandby Act = "MakeStandby"
	// Note writes the signed record of the Deployment.
	Note Act = "Note"
	// Switch has the ABRelease give all requests to the standby.
	Switch Act = "Switch"
	// Return has it give them back to the target.
	Return Act = "Return"
	// Remove deletes the ABRelease, and the garbage collector the Deployment.
	Remove Act = "Remove"
)

// Decision is what follows. Exactly one of its fields is set.
type Decision struct {
	// Act is to be carried out, and what it may have changed is to be read again.
	Act Act
	// Store is the standby to store in the status of the step.
	Store *v1alpha1.StepStandby
	// Wait for a time, or for a change.
	Wait *Wait
	// Refused says why the target gets no standby.
	Refused string
	// Done says that the standby serves, or that none is left.
	Done bool
}

// Wait is until when nothing is done, and why.
type Wait struct {
	Until time.Time
	Why   string
}
