// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ended is a container of which an earlier instance ended then.
func ended(at time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.NewTime(at)}}}
}

func TestASlimPodKeepsWhenAContainerEndedLast(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	stopped := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(time.Minute))}}}
	for name, c := range map[string]struct {
		phase      corev1.PodPhase
		containers []corev1.ContainerStatus
		want       time.Time
	}{
		"of one that runs":                             {corev1.PodRunning, []corev1.ContainerStatus{{RestartCount: 0, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}, time.Time{}},
		"of one that has restarted":                    {corev1.PodRunning, []corev1.ContainerStatus{{}, ended(noon)}, noon},
		"of the one that ended last":                   {corev1.PodRunning, []corev1.ContainerStatus{ended(noon), ended(noon.Add(-time.Hour))}, noon},
		"of one that has stopped and does not run yet": {corev1.PodRunning, []corev1.ContainerStatus{ended(noon), stopped}, noon.Add(time.Minute)},
		"of a Job that is done":                        {corev1.PodSucceeded, []corev1.ContainerStatus{stopped}, time.Time{}},
		"of a pod that has failed as a whole":          {corev1.PodFailed, []corev1.ContainerStatus{stopped}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOfADeployment(1)
			pod.Status.Phase, pod.Status.ContainerStatuses = c.phase, c.containers
			slim, err := slimPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			var want []corev1.ContainerStatus
			if !c.want.IsZero() {
				want = []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(c.want)}}}}
			}
			got := slim.(*corev1.Pod).Status.ContainerStatuses
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for since, wanted := range map[time.Time]bool{
				c.want: !c.want.IsZero(), c.want.Add(300 * time.Millisecond): !c.want.IsZero(), c.want.Add(time.Second): false, c.want.Add(-time.Hour): !c.want.IsZero(),
			} {
				if is := hasEnded(got, since); is != wanted {
					t.Errorf("since %s it has restarted: %v", since, is)
				}
			}
		})
	}
}
