// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHealthOfAWorkload(t *testing.T) {
	before, after := written.Add(-time.Minute), written.Add(time.Minute)
	up := Container{Ready: true}
	down := Container{}
	pod := func(c ...Container) Pod { return Pod{Containers: c} }
	of := func(desired int, pods ...Pod) Workload { return Workload{HasPods: true, Desired: desired, Pods: pods} }
	score := func(n int32) *int32 { return &n }
	tests := map[string]struct {
		workload Workload
		want     Component
	}{
		"all are ready":                         {of(2, pod(up), pod(up)), Component{Assessed, score(10_000), false, "2 of 2 ready, no restart and no pod out of memory since the write"}},
		"a container has restarted since":       {of(1, pod(Container{Ready: true, TerminatedTime: after})), Component{Assessed, score(7_500), false, "1 of 1 ready, and 1 pod restarted since the write"}},
		"a container had restarted before":      {of(1, pod(Container{Ready: true, TerminatedTime: before})), Component{Assessed, score(10_000), false, "1 of 1 ready, no restart and no pod out of memory since the write"}},
		"some are ready":                        {of(3, pod(up), pod(down)), Component{Assessed, score(5_000), false, "1 of 3 ready"}},
		"none is ready":                         {of(2, pod(down), pod(down)), Component{Assessed, score(0), true, "0 of 2 ready"}},
		"a pod crashes again and again":         {of(2, pod(up), pod(Container{CrashLooping: true})), Component{Assessed, score(0), true, "1 of 2 ready, and 1 pod in a crash loop"}},
		"it has no pods":                        {of(2), Component{Assessed, score(0), true, "0 of 2 ready"}},
		"a pod without containers is not ready": {of(1, pod()), Component{Assessed, score(0), true, "0 of 1 ready"}},
		"pods that leave do not count":          {of(2, pod(up), pod(up), Pod{Leaving: true, Containers: []Container{{CrashLooping: true}}}), Component{Assessed, score(10_000), false, "2 of 2 ready, no restart and no pod out of memory since the write"}},
		"more are ready than it wants":          {of(2, pod(up), pod(up), pod(up)), Component{Assessed, score(10_000), false, "2 of 2 ready, no restart and no pod out of memory since the write"}},
		"it is not rolled out": {Workload{HasPods: true, Desired: 1, Unready: true, Pods: []Pod{pod(up), {Containers: []Container{down}}}},
			Component{Assessed, score(5_000), false, "1 of 1 ready, and it is not rolled out"}},
		"it wants no pods":  {of(0), Component{Assessed, nil, false, "it wants no pods"}},
		"its kind has none": {Workload{}, Component{Assessed, nil, false, "its kind has no pods"}},
		"it is gone":        {Workload{Gone: true}, Component{Assessed, score(0), true, "it is not there"}},
		"defect 5: one of two containers is down": {of(1, pod(up, down)), Component{Assessed, score(0), true, "0 of 1 ready"}},
		"defect 5: a later container crashes":     {of(1, pod(up, Container{CrashLooping: true})), Component{Assessed, score(0), true, "0 of 1 ready, and 1 pod in a crash loop"}},
		"defect 5: a pod of one container ran out of memory": {of(1, pod(Container{Ready: true, TerminatedTime: after, OutOfMemory: true})),
			Component{Assessed, score(2_500), false, "1 of 1 ready, and 1 pod out of memory since the write"}},
		"defect 5: it ran out of memory before the write": {of(1, pod(Container{Ready: true, TerminatedTime: before, OutOfMemory: true})),
			Component{Assessed, score(10_000), false, "1 of 1 ready, no restart and no pod out of memory since the write"}},
		"defect 5: an init container crashes":              {of(1, pod(Container{Init: true, CrashLooping: true}, down)), Component{Assessed, score(0), true, "0 of 1 ready, and 1 pod in a crash loop"}},
		"an init container that has ended is no restart":   {of(1, pod(Container{Init: true, TerminatedTime: after}, up)), Component{Assessed, score(10_000), false, "1 of 1 ready, no restart and no pod out of memory since the write"}},
		"defect 6: one of three exists, and that is ready": {of(3, pod(up)), Component{Assessed, score(5_000), false, "1 of 3 ready"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := JudgeHealth(tc.workload, written)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the health differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountsOfPods(t *testing.T) {
	after := written.Add(time.Minute)
	w := Workload{HasPods: true, Desired: 5, Pods: []Pod{
		{Containers: []Container{{Ready: true}, {Ready: true, TerminatedTime: after, OutOfMemory: true}}},
		{Containers: []Container{{CrashLooping: true, TerminatedTime: after}, {CrashLooping: true, TerminatedTime: after}}},
		{Leaving: true, Containers: []Container{{CrashLooping: true}}},
		{},
	}}
	_, got := JudgeHealth(w, written)
	if diff := cmp.Diff(PodCounts{Pods: 3, Ready: 1, CrashLooping: 1, OutOfMemory: 1, Restarted: 2}, got); diff != "" {
		t.Errorf("the counts differ (-want +got):\n%s", diff)
	}
}
