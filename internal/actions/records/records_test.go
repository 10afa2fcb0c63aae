// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

const system = "plumbline-system"

// pods returns the pods of a served archive, changed.
func pods(a *clitest.Archive, change func(*corev1.Pod)) []client.Object {
	objects := a.Served()
	for _, o := range objects {
		if pod, is := o.(*corev1.Pod); is {
			change(pod)
		}
	}
	return objects
}

func TestTheExecutorIsAskedAtItsHealthPort(t *testing.T) {
	archive := clitest.PackedArchive(t)
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		port   int
	}{
		"a pod of the chart of before":         {func(*corev1.Pod) {}, 8081},
		"a pod whose container names the port": {func(p *corev1.Pod) { p.Spec.Containers = serving("health", 9000) }, 9000},
		"a pod with other ports":               {func(p *corev1.Pod) { p.Spec.Containers = serving("metrics", 9000) }, 8081},
		"an assessor that is an executor as well": {func(p *corev1.Pod) {
			p.Labels["app.kubernetes.io/component"] = "assessor"
			p.Spec.Containers = []corev1.Container{{Args: []string{"--role=assess,execute"}}}
		}, 8081},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []portforward.Target
			proxy := func(_ context.Context, target portforward.Target, _ string, _ map[string]string) ([]byte, error) {
				asked = append(asked, target)
				return nil, nil
			}
			if _, err := records.OpenServed(t.Context(), clitest.Cluster{Objects: pods(archive, tc.change)}.Connect(t), proxy, system); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]portforward.Target{{Namespace: system, Pod: "executor-0", Port: tc.port}}, asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func serving(name string, port int32) []corev1.Container {
	return []corev1.Container{{Name: "executor", Ports: []corev1.ContainerPort{{Name: name, ContainerPort: port}}}}
}

func TestAPodThatServesNoRecordsIsNotAsked(t *testing.T) {
	archive := clitest.PackedArchive(t)
	for name, change := range map[string]func(*corev1.Pod){
		"a pod that does not run":  func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		"a pod of another process": func(p *corev1.Pod) { p.Labels["app.kubernetes.io/component"] = "xds" },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := records.OpenServed(t.Context(), clitest.Cluster{Objects: pods(archive, change)}.Connect(t), archive.Proxy(), system)
			if away, is := errors.AsType[*records.AwayError](err); !is || away.Pod != "" || away.Err != nil {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestTheListOfRecordsHasNoBodies(t *testing.T) {
	archive := clitest.PackedArchive(t)
	var names []string
	for name, err := range records.WithoutBodies(archive.Writer.Store).List(t.Context(), "") {
		clitest.Must(t, err)
		names = append(names, name)
	}
	var want []string
	for _, s := range archive.Sealed {
		want = append(want, s.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePlansThatHaveEndedAreToldInTheOrderOfTheirRecords(t *testing.T) {
	archive := clitest.PackedArchive(t)
	archive.Append(clitest.DecisionOf(evidence.KindPlanCreated, "under-way", clitest.Now))
	archive.Append(clitest.DecisionOf(evidence.KindPlanCreated, "second", clitest.Now))
	finished := clitest.DecisionOf(evidence.KindPlanFinished, "second", clitest.Now)
	finished.Result.State = "Succeeded"
	archive.Append(finished)
	found, err := records.Find(t.Context(), archive.Writer.Store, &records.Known{Keys: records.Keys{Ring: archive.Writer.Keys}}, func(r *evidence.Record) bool { return r.Plan != nil })
	clitest.Must(t, err)
	var got []string
	for _, p := range found.Ended() {
		got = append(got, p.Plan.Name+" "+p.Status)
	}
	if diff := cmp.Diff([]string{"done PartialSuccess", "second Succeeded"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
