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
	// Unready says that the workload itself does not tell that it is as its spec says: a new pod
	// that cannot start leaves the old ones ready.
	Unready bool
	Pods    []Pod
}

// PodCounts count pods, not containers. Pods that leave do not count.
type PodCounts struct {
	Pods, Ready, CrashLooping, OutOfMemory, Restarted int
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
func JudgeHealth(w Workload, written time.Time) (Component, PodCounts) {
	switch {
	case w.Gone:
		return Component{Assessed, new(int32(0)), true, "it is not there"}, PodCounts{}
	case !w.HasPods:
		return Component{Assessed, nil, false, "its kind has no pods"}, PodCounts{}
	}
	c := countPods(w.Pods, written)
	if w.Desired == 0 {
		return Component{Assessed, nil, false, "it wants no pods"}, c
	}
	return w.judgePods(c), c
}

func (w *Workload) judgePods(c PodCounts) Component {
	ready := fmt.Sprintf("%d of %d ready", min(c.Ready, w.Desired), w.Desired)
	switch {
	case c.CrashLooping > 0:
		return Component{Assessed, new(int32(0)), true, fmt.Sprintf("%s, and %s in a crash loop", ready, pods(c.CrashLooping))}
	case c.Ready == 0:
		return Component{Assessed, new(int32(0)), true, ready}
	case c.Ready < w.Desired:
		return Component{Assessed, new(int32(someReady)), false, ready}
	case w.Unready:
		return Component{Assessed, new(int32(someReady)), false, ready + ", and it is not rolled out"}
	case c.OutOfMemory > 0:
		return Component{Assessed, new(int32(ranOutOfMemory)), false, fmt.Sprintf("%s, and %s out of memory since the write", ready, pods(c.OutOfMemory))}
	case c.Restarted > 0:
		return Component{Assessed, new(int32(restarted)), false, fmt.Sprintf("%s, and %s restarted since the write", ready, pods(c.Restarted))}
	}
	return Component{Assessed, new(int32(allReady)), false, ready + ", no restart and no pod out of memory since the write"}
}

func pods(n int) string { return plural.Of(n, "pod") }

func countPods(all []Pod, written time.Time) (n PodCounts) {
	for _, pod := range all {
		if pod.Leaving {
			continue
		}
		ready, has := true, PodCounts{}
		for _, c := range pod.Containers {
			if !c.Init && !c.Ready {
				ready = false
			}
			if c.CrashLooping {
				has.CrashLooping = 1
			}
			since := c.TerminatedTime.After(written)
			if since && c.OutOfMemory {
				has.OutOfMemory = 1
			}
			if since && !c.Init { // an init container ends each time
				has.Restarted = 1
			}
		}
		n.Pods++
		if ready && len(pod.Containers) > 0 {
			n.Ready++
		}
		n.CrashLooping, n.OutOfMemory, n.Restarted = n.CrashLooping+has.CrashLooping, n.OutOfMemory+has.OutOfMemory, n.Restarted+has.Restarted
	}
	return n
}
