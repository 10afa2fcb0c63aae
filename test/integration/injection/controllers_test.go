// SPDX-License-Identifier: Apache-2.0

//go:build integration

package injection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// app labels what the tests make.
var app = map[string]string{"app": "web"}

// plain is a template that Pod Security "restricted" takes.
func plain(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: app},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{Name: "app", Image: "shop/web:1", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
}

// workloads are of each kind that makes pods.
func workloads() map[string]func(namespace string) client.Object {
	selector := &metav1.LabelSelector{MatchLabels: app}
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: app}
	}
	job := batchv1.JobSpec{Template: plain(corev1.RestartPolicyNever)}
	return map[string]func(namespace string) client.Object{
		"a Deployment": func(ns string) client.Object {
			return &appsv1.Deployment{ObjectMeta: meta(ns), Spec: appsv1.DeploymentSpec{Selector: selector, Template: plain(corev1.RestartPolicyAlways)}}
		},
		"a StatefulSet": func(ns string) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta(ns), Spec: appsv1.StatefulSetSpec{Selector: selector, ServiceName: "web", Template: plain(corev1.RestartPolicyAlways)}}
		},
		"a Job": func(ns string) client.Object { return &batchv1.Job{ObjectMeta: meta(ns), Spec: job} },
		"a CronJob": func(ns string) client.Object {
			return &batchv1.CronJob{ObjectMeta: meta(ns), Spec: batchv1.CronJobSpec{
				Schedule: "0 * * * *", Suspend: new(true), JobTemplate: batchv1.JobTemplateSpec{Spec: job},
			}}
		},
	}
}

// run makes a workload; a CronJob is given an hour that it missed.
func run(t *testing.T, workload client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	cron, ok := workload.(*batchv1.CronJob)
	if !ok {
		return
	}
	cron.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}
	if err := admin.Status().Update(t.Context(), cron); err != nil {
		t.Fatal(err)
	}
	cron.Spec.Suspend = nil
	if err := admin.Update(t.Context(), cron); err != nil {
		t.Fatal(err)
	}
}

// thePod is the one pod of a namespace that is not the one before.
func thePod(t *testing.T, namespace, before string) *corev1.Pod {
	t.Helper()
	var found corev1.Pod
	poll.Until(t, patience, "there is a pod", func() error {
		var pods corev1.PodList
		if err := admin.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Name != before })
		if i < 0 {
			return errors.New("none yet")
		}
		found = pods.Items[i]
		return nil
	})
	return &found
}

// mustHaveProxy says what an injected pod of a mode lacks.
func mustHaveProxy(t *testing.T, pod *corev1.Pod, mode inject.Mode) {
	t.Helper()
	want := []string{inject.ProxyContainer}
	if mode == inject.Redirect {
		want = []string{inject.RedirectContainer, inject.ProxyContainer}
	}
	var got []string
	for _, c := range pod.Spec.InitContainers {
		got = append(got, c.Name)
	}
	if !slices.Equal(want, got) || pod.Labels[inject.LabelProxy] != string(mode) {
		t.Fatalf("init containers %q, label %q, want %q and %q", got, pod.Labels[inject.LabelProxy], want, mode)
	}
	proxy := pod.Spec.InitContainers[len(want)-1]
	if proxy.Image != "docker.io/envoyproxy/envoy:distroless-v1.40.0" || !strings.Contains(strings.Join(proxy.Args, " "), "plumbline-xds.plumbline-system.svc") {
		t.Errorf("the proxy is not that of the chart: %s %q", proxy.Image, proxy.Args)
	}
}

func mustHaveNoProxy(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if len(pod.Spec.InitContainers) > 0 || pod.Labels[inject.LabelProxy] != "" || slices.Contains(namesOf(pod), inject.ProxyContainer) {
		t.Errorf("the pod was changed: containers %v, labels %v", namesOf(pod), pod.Labels)
	}
}

// TestPodsOfEveryControllerGetAProxy in the narrowest namespace that the mode has.
func TestPodsOfEveryControllerGetAProxy(t *testing.T) {
	levels := map[inject.Mode]string{inject.Explicit: "restricted", inject.Redirect: "privileged"}
	for kind, made := range workloads() {
		for mode, level := range levels {
			t.Run(fmt.Sprintf("%s in mode %s", kind, mode), func(t *testing.T) {
				t.Parallel()
				ns := namespace(t, map[string]string{
					inject.LabelInject: inject.Enabled, inject.LabelMode: string(mode), "pod-security.kubernetes.io/enforce": level,
				})
				run(t, made(ns))
				mustHaveProxy(t, thePod(t, ns, ""), mode)
			})
		}
	}
}

func TestAPodThatIsMadeAgainGetsAProxyAgain(t *testing.T) {
	t.Parallel()
	ns := namespace(t, map[string]string{inject.LabelInject: inject.Enabled})
	run(t, workloads()["a Deployment"](ns))
	first := thePod(t, ns, "")
	mustHaveProxy(t, first, inject.Explicit)
	if err := admin.Delete(t.Context(), first, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	mustHaveProxy(t, thePod(t, ns, first.Name), inject.Explicit)
}
