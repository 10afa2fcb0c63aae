// SPDX-License-Identifier: Apache-2.0

package bluegreen

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// again is when what is not as it has to be is read again.
const again = 2 * time.Second

// Serve decides what brings all requests of the target to a standby. Before it is Done, the target
// must not be written.
func Serve(in *Input) Decision {
	if in.Stored == nil || in.Stored.Phase == v1alpha1.StandbyRemoved {
		return in.looked(in.begin)
	}
	switch in.Stored.Phase {
	case v1alpha1.StandbyPreparing:
		return in.looked(in.prepare)
	case v1alpha1.StandbySwitching:
		return in.looked(in.switchOver)
	case v1alpha1.StandbyServing:
		return in.looked(in.serve)
	case v1alpha1.StandbyReturning, v1alpha1.StandbyDraining, v1alpha1.StandbyRemoving, v1alpha1.StandbyRemoved:
		return Retire(in) // another one is made when nothing is left of this one
	}
	return Decision{Refused: fmt.Sprintf("its standby is in a phase that this version does not know: %s", in.Stored.Phase)}
}

// looked has a decision made on what was read.
func (in *Input) looked(decide func() Decision) Decision {
	switch {
	case in.Acted != nil && in.Acted.Refused != "":
		return Decision{Refused: in.Acted.Refused}
	case in.Acted != nil && in.Acted.Lost:
		return in.wait("a request about the standby has no answer")
	case in.Seen == nil:
		return Decision{Act: Read}
	case !in.Seen.Known:
		return in.wait("its standby could not be read: " + in.Seen.Why)
	}
	return decide()
}

func (in *Input) wait(why string) Decision {
	return Decision{Wait: &Wait{Until: in.Now.Add(again), Why: why}}
}

// begin stores the intent to make a standby.
func (in *Input) begin() Decision {
	seen := in.Seen
	switch {
	case seen.Obstacle != "":
		return Decision{Refused: seen.Obstacle}
	case seen.Replicas == 0:
		return Decision{Refused: "NoReplicas: the repaired target has no pods that a standby could stand in for"}
	case in.TimeUnknown:
		return in.wait("the time of the API server is not known") // a creation says until when it may be stored
	}
	number := int32(1)
	if in.Stored != nil {
		number = in.Stored.Number + 1
	}
	now := metav1.NewTime(in.Now)
	return Decision{Store: &v1alpha1.StepStandby{
		Phase: v1alpha1.StandbyPreparing, PhaseTime: now, StartTime: now, Number: number, Name: in.Name(number),
		ServiceName: seen.ServiceName, Replicas: seen.Replicas, TargetReplicas: seen.Target.ReadyReplicas,
	}}
}

// prepare has the ABRelease and the Deployment made, and waits until the pods are ready.
func (in *Input) prepare() Decision {
	seen := in.Seen
	switch {
	case seen.Obstacle != "":
		return Decision{Refused: seen.Obstacle}
	case seen.Release.Exists && (seen.Release.Foreign || seen.Release.Ending), seen.Standby.Exists && seen.Standby.Foreign:
		return Decision{Refused: "another object has the name " + in.Stored.Name + " of its standby, or a user deletes it"}
	case !seen.Release.Exists:
		return in.make(MakeRelease)
	case !seen.Standby.Exists:
		return in.make(MakeStandby)
	case in.Stored.Evidence == nil && in.Evidence == nil:
		return Decision{Act: Note}
	case !seen.Standby.Ready:
		return in.waitOrRefuse("its standby is not ready: " + seen.Standby.Why)
	case !seen.Release.InForce:
		return in.waitOrRefuse("proxies do not have its ABRelease: " + seen.Release.Why)
	}
	return in.enter(v1alpha1.StandbySwitching)
}

// make has an object made while the API server still admits its creation.
func (in *Input) make(act Act) Decision {
	switch {
	case in.TimeUnknown:
		return in.wait("the time of the API server is not known")
	case !in.Now.Before(in.Stored.StartTime.Add(in.Creatable)):
		return Decision{Refused: "its standby could not be made in time, or another writer removed it"}
	}
	return Decision{Act: act}
}

// switchOver moves the requests, and waits until all proxies have acknowledged that.
func (in *Input) switchOver() Decision {
	switch {
	case in.isLost():
		return Decision{Refused: "another writer removed its standby"}
	case !in.Seen.Standby.Ready:
		return in.waitOrRefuse("its standby is not ready any more: " + in.Seen.Standby.Why)
	case !in.Seen.Release.ToStandby:
		return Decision{Act: Switch}
	case !in.Seen.Release.InForce:
		return in.waitOrRefuse("proxies do not send all requests to its standby: " + in.Seen.Release.Why)
	}
	return in.enter(v1alpha1.StandbyServing)
}

// serve says whether the standby has all requests.
func (in *Input) serve() Decision {
	switch {
	case in.isLost():
		return Decision{Refused: "another writer removed its standby"}
	case !in.Seen.Release.ToStandby:
		return Decision{Refused: "another writer moved the requests away from its standby"}
	case !in.Seen.Standby.Ready:
		return in.waitOrRefuse("its standby is not ready any more: " + in.Seen.Standby.Why)
	case !in.Seen.Release.InForce:
		return in.waitOrRefuse("proxies do not send all requests to its standby: " + in.Seen.Release.Why)
	}
	return Decision{Done: true}
}

// isLost says that the ABRelease or the Deployment is not there any more.
func (in *Input) isLost() bool {
	release, standby := in.Seen.Release, in.Seen.Standby
	return !release.Exists || release.Foreign || release.Ending || !standby.Exists || standby.Foreign
}

// waitOrRefuse waits within the deadline of the phase.
func (in *Input) waitOrRefuse(why string) Decision {
	if deadline := in.Stored.PhaseTime.Add(in.Timeout); !in.Now.Before(deadline) {
		return Decision{Refused: fmt.Sprintf("after %s in the phase %s, %s", in.Timeout, in.Stored.Phase, why)}
	}
	return in.wait(why)
}

// enter stores the next phase.
func (in *Input) enter(phase v1alpha1.StandbyPhase) Decision {
	next := in.Stored.DeepCopy()
	next.Phase, next.PhaseTime = phase, metav1.NewTime(in.Now)
	if next.Evidence == nil {
		next.Evidence = in.Evidence.DeepCopy()
	}
	return Decision{Store: next}
}
