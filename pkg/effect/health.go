// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Container is one container of a pod, of the init containers or of the others.
type Container struct {
	// Init says that the container runs before the others; it need not be ready.
	Init bool
	// Ready says that the container answers.
	Ready bool
	// CrashLooping says that the kubelet waits before it starts the container again.
	CrashLooping bool
	// TerminatedTime is when the container ended last; zero if it has not.
	TerminatedTime time.Time
	// OutOfMemory says that it ended because it had too little memory.
	OutOfMemory bool
}

// Pod is a pod of the target, found by its owners.
type Pod struct {
	// Leaving says that the pod is being deleted, or has finished.
	Leaving    bool
	Containers []Container
}

// Workload is what the API server tells of a target and its pods.
type Workload struct {
	// Gone says that the target is not there.
	Gone bool
	// HasPods says that the kind has pods.
	HasPods bool
	// Desired is the number of pods that the target wants.
	Desired int
	Pods    []Pod
}

// Scores of health, in basis points: the five levels of design document 004.
const (
	allReady       = Best
	restarted      = 7_500
	someReady      = 5_000
	ranOutOfMemory = 2_500
)

// JudgeHealth scores a workload after a write. Only what has happened since the write counts. A
// workload that wants no pods has no score: there is nothing that could be ill.
func JudgeHealth(w Workload, written time.Time) Component {
	switch {
	case w.Gone:
		return Component{Assessed, new(int32(0)), true, "it is not there"}
	case !w.HasPods:
		return Component{Assessed, nil, false, "its kind has no pods"}
	case w.Desired == 0:
		return Component{Assessed, nil, false, "it wants no pods"}
	}
	c := countPods(w.Pods, written)
	ready := fmt.Sprintf("%d of %d ready", min(c.ready, w.Desired), w.Desired)
	switch {
	case c.crashLooping > 0:
		return Component{Assessed, new(int32(0)), true, fmt.Sprintf("%s, and %s in a crash loop", ready, pods(c.crashLooping))}
	case c.ready == 0:
		return Component{Assessed, new(int32(0)), true, ready}
	case c.ready < w.Desired:
		return Component{Assessed, new(int32(someReady)), false, ready}
	case c.outOfMemory > 0:
		return Component{Assessed, new(int32(ranOutOfMemory)), false, fmt.Sprintf("%s, and %s out of memory since the write", ready, pods(c.outOfMemory))}
	case c.restarted > 0:
		return Component{Assessed, new(int32(restarted)), false, fmt.Sprintf("%s, and %s restarted since the write", ready, pods(c.restarted))}
	}
	return Component{Assessed, new(int32(allReady)), false, ready + ", no restart and nothing out of memory since the write"}
}

func pods(n int) string { return plural.Of(n, "pod") }

// podCounts count pods, not containers.
type podCounts struct {
	ready, crashLooping, outOfMemory, restarted int
}

func countPods(all []Pod, written time.Time) (n podCounts) {
	for _, pod := range all {
		if pod.Leaving {
			continue
		}
		ready, has := true, podCounts{}
		for _, c := range pod.Containers {
			if !c.Init && !c.Ready {
				ready = false
			}
			if c.CrashLooping {
				has.crashLooping = 1
			}
			since := c.TerminatedTime.After(written)
			if since && c.OutOfMemory {
				has.outOfMemory = 1
			}
			if since && !c.Init { // an init container ends each time
				has.restarted = 1
			}
		}
		if ready && len(pod.Containers) > 0 {
			n.ready++
		}
		n.crashLooping, n.outOfMemory, n.restarted = n.crashLooping+has.crashLooping, n.outOfMemory+has.outOfMemory, n.restarted+has.restarted
	}
	return n
}
