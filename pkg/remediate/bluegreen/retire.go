// SPDX-License-Identifier: Apache-2.0

package bluegreen

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

const (
	// drainLeast is how long a standby drains at least: proxies tell every ten seconds what is under way.
	drainLeast = 15 * time.Second
	// drainMost is how long it drains at most; the proxies of its pods end what is left.
	drainMost = time.Minute
)

// Retire decides what gives the requests back to the target and removes the standby. It is Done
// when nothing is left. Nothing holds it back: no schedule, no halt and no policy that is gone.
func Retire(in *Input) Decision {
	if in.Stored == nil {
		return Decision{Done: true}
	}
	switch in.Stored.Phase {
	case v1alpha1.StandbyPreparing: // no request to move anything was sent
		return in.enter(v1alpha1.StandbyRemoving)
	case v1alpha1.StandbySwitching, v1alpha1.StandbyServing:
		return in.enter(v1alpha1.StandbyReturning)
	case v1alpha1.StandbyReturning:
		return in.retiring(in.giveBack)
	case v1alpha1.StandbyDraining:
		return in.retiring(in.drain)
	case v1alpha1.StandbyRemoving:
		return in.retiring(in.remove)
	case v1alpha1.StandbyRemoved:
		return Decision{Done: true}
	}
	return in.wait(fmt.Sprintf("its standby is in a phase that this version does not know: %s", in.Stored.Phase))
}

// retiring is looked for the way back: a refusal ends nothing there.
func (in *Input) retiring(decide func() Decision) Decision {
	if in.Acted != nil && in.Acted.Refused != "" {
		return in.wait("a request about the standby was refused: " + in.Acted.Refused)
	}
	return in.looked(func() Decision {
		release := in.Seen.Release
		switch {
		case !release.Exists || release.Foreign:
			return in.leave()
		case release.Ending:
			return in.wait("its ABRelease is being deleted")
		}
		return decide()
	})
}

// leave ends the standby when its ABRelease is gone, and no creation of it can be stored any more.
func (in *Input) leave() Decision {
	if in.TimeUnknown {
		return in.wait("the time of the API server is not known")
	}
	if until := in.Stored.StartTime.Add(in.Outlived); in.Now.Before(until) {
		return Decision{Wait: &Wait{Until: until, Why: "a request to make its standby may still be under way"}}
	}
	return in.enter(v1alpha1.StandbyRemoved)
}

// giveBack moves the requests back as soon as the target can answer them.
func (in *Input) giveBack() Decision {
	release := in.Seen.Release
	switch {
	case release.ToStandby && !in.canAnswer():
		return in.wait(fmt.Sprintf("its standby keeps the requests until %s of the target are ready, and %d are now; to return them now, delete ABRelease %s",
			plural.Of(int(in.leastReady()), "pod"), in.Seen.Target.ReadyReplicas, in.Stored.Name))
	case release.ToStandby:
		return Decision{Act: Return}
	case !release.InForce && !release.NoProxies:
		return in.wait("its standby stays, since proxies may still send requests to it: " + release.Why)
	}
	return in.enter(v1alpha1.StandbyDraining)
}

// canAnswer says that the target is as it should be or as it was before, or that the standby answers
// no requests. A target that somebody deleted keeps no standby.
func (in *Input) canAnswer() bool {
	target, standby := in.Seen.Target, in.Seen.Standby
	return !target.Exists || target.Ready || target.ReadyReplicas >= in.leastReady() || !standby.Exists || standby.ReadyReplicas == 0
}

// leastReady is how many pods of the target have to be ready that is not as it should be.
func (in *Input) leastReady() int32 { return max(1, in.Stored.TargetReplicas) }

// drain waits for the requests that the standby has not answered.
func (in *Input) drain() Decision {
	since := in.Stored.PhaseTime.Time
	switch {
	case in.Seen.Release.ToStandby:
		return in.enter(v1alpha1.StandbyReturning) // a writer moved requests to it
	case !in.Now.Before(since.Add(drainMost)):
	case in.Now.Before(since.Add(drainLeast)):
		return Decision{Wait: &Wait{Until: since.Add(drainLeast), Why: "its standby answers requests that are under way"}}
	case in.Seen.Release.InFlight > 0:
		return in.wait(fmt.Sprintf("its standby has not answered %d requests", in.Seen.Release.InFlight))
	}
	return in.enter(v1alpha1.StandbyRemoving)
}

// remove deletes the ABRelease once the Deployment has its record.
func (in *Input) remove() Decision {
	switch {
	case in.Seen.Release.ToStandby:
		return in.enter(v1alpha1.StandbyReturning)
	case in.Stored.Evidence == nil && in.Evidence == nil && in.Seen.Standby.Exists && !in.Seen.Standby.Foreign:
		return Decision{Act: Note}
	}
	return Decision{Act: Remove}
}
