// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// delivery is a cluster with what the chart installs for rollouts, of which the discovery server runs.
func delivery(t *testing.T) (*cluster, *replica) {
	t.Helper()
	return deliveryWith(t, nil, nil)
}

// deliveryWith is delivery with further values of the chart, and further flags of the discovery server.
func deliveryWith(t *testing.T, values, flags []string) (*cluster, *replica) {
	t.Helper()
	c := deliveryCluster(t, values...)
	return c, c.startAt(t, freeport.Address(t), "xds-0", append([]string{"--rollouts"}, flags...)...)
}

// deliveryCluster is the cluster of delivery, in which no discovery server runs yet.
func deliveryCluster(t *testing.T, values ...string) *cluster {
	t.Helper()
	helm, err := rendered.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values = append([]string{"--set", "mesh.enabled=true", "--set", "delivery.enabled=true", "--set", "redis.enabled=false"}, values...)
	objects, err := apiserver.Render(t.Context(), helm, values...)
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition" && o.GetKind() != "RolloutStrategy" && !strings.HasPrefix(o.GetName(), "plumbline-xds") && !strings.HasPrefix(o.GetName(), "plumbline-release")
	})
	return ownCluster(t, objects)
}

// application answers with its version, and fails a part of its requests, in percent.
type application struct {
	address string
	fails   atomic.Int64
	asked   atomic.Int64
}

func startApplication(t *testing.T, version string) *application {
	t.Helper()
	a := &application{}
	l, err := net.Listen("tcp", net.JoinHostPort(backend.Own(t), "0")) //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := a.asked.Add(1); n%100 < a.fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, version)
	}))
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	a.address = l.Addr().String()
	return a
}

// deployment makes a Deployment with one ready pod, whose controller the test is.
func (s *shop) deployment(version, image string, a *application) *appsv1.Deployment {
	s.Helper()
	labels := map[string]string{"app": "web", "version": version}
	d := &appsv1.Deployment{ObjectMeta: s.named("web-" + version), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}},
	}}
	s.create(d)
	s.roll(d, "1", a)
	return d
}

// roll has the pods of a Deployment be those of its template, with a revision label.
func (s *shop) roll(d *appsv1.Deployment, label string, a *application) {
	s.Helper()
	at := netip.MustParseAddrPort(a.address)
	s.must(s.c.admin.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.name), client.MatchingLabels(d.Spec.Selector.MatchLabels), client.GracePeriodSeconds(0)))
	pod := &corev1.Pod{ObjectMeta: s.named(d.Name + "-" + label), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(at.Port())}}
	pod.Labels = map[string]string{"pod-template-hash": label}
	maps.Copy(pod.Labels, d.Spec.Template.Labels)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-" + label, UID: types.UID(label), Controller: new(true)}}
	s.create(pod)
	s.ready(pod, at.Addr().String())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	s.must(s.c.admin.Status().Update(s.Context(), d))
}

// rollout is a release with stages, of which each is measured for ten seconds, after a cohort check.
func (s *shop) rollout(check string) *v1alpha1.ABRelease {
	s.Helper()
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: stable, workload: {kind: Deployment, name: web-stable}}
- {name: canary, workload: {kind: Deployment, name: web-canary}}
trafficSplit: {type: Sticky, sticky: {header: visitor}, percentages: {stable: 100, canary: 0}}
rollout:
  analysis: {cohortCheck: `+check+`}
  start: Manual
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 20, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 50, duration: 10s, healthThreshold: 90, requireApproval: Enabled}
    - {trafficPercentage: 100, duration: 0s}
`), &r.Spec))
	s.create(r)
	return r
}

// crowd sends requests of many visitors until the test ends, and notes whom it finds moved back.
type crowd struct {
	failed, movedBack atomic.Int64
	// canaries counts the answers of the canary.
	canaries atomic.Int64
}

const visitorsOfACrowd = 400

func startCrowd(t *testing.T, front string) *crowd {
	t.Helper()
	c := &crowd{}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		at := map[int]string{}
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			visitor := n % visitorsOfACrowd
			answer, _ := askAs(ctx, front, fmt.Sprintf("visitor-%d", visitor))
			if ctx.Err() != nil {
				return
			}
			version := strings.TrimPrefix(strings.TrimPrefix(answer, "200 "), "500 ")
			switch {
			case version == "canary":
				c.canaries.Add(1)
			case at[visitor] == "canary":
				c.movedBack.Add(1)
			}
			if !strings.HasPrefix(answer, "200 ") {
				c.failed.Add(1)
			}
			at[visitor] = version
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return c
}

func askAs(ctx context.Context, front, visitor string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+front+"/", http.NoBody)
	if err != nil {
		return err.Error(), err
	}
	request.Header.Set("visitor", visitor)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(body)), err
}

// world of a rollout: a Service whose stable version serves a crowd by a sidecar, and a canary.
func (c *cluster) rolloutWorld(t *testing.T, server *replica) (s *shop, r *v1alpha1.ABRelease, stable, canary *application, clients *crowd) {
	t.Helper()
	return c.checkedWorld(t, server, "0s")
}

// checkedWorld is rolloutWorld with a cohort check.
func (c *cluster) checkedWorld(t *testing.T, server *replica, check string) (s *shop, r *v1alpha1.ABRelease, stable, canary *application, clients *crowd) {
	t.Helper()
	s = c.shop(t, enabled)
	s.selecting("web")
	stable, canary = startApplication(t, "stable"), startApplication(t, "canary")
	s.deployment("stable", "shop:1", stable)
	s.deployment("canary", "shop:2", canary)
	s.addressed("web", stable.address) // as the controller of EndpointSlices would
	r = s.rollout(check)
	s.awaitCopy()
	proxy := s.sidecar(server, "front-0", s.copied().Data["ca.crt"], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 stable")
	s.waits(r, "ManualStart")
	return s, r, stable, canary, startCrowd(t, proxy.front["web"])
}

// waits until the run waits for a reason.
func (s *shop) waits(r *v1alpha1.ABRelease, reason string) {
	s.Helper()
	s.wait(r, patience, "the run waits for "+reason, func(r *v1alpha1.ABRelease) bool {
		return r.Status.Rollout != nil && r.Status.Rollout.Waiting != nil && r.Status.Rollout.Waiting.Reason == reason
	})
}

// ask asks something of the run under way.
func (s *shop) ask(as client.Client, r *v1alpha1.ABRelease, control string) error {
	return as.Patch(s.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"control":`+control+`}}}`)))
}

// as is a client of a user who may edit releases of the shop, and may do with them what further verbs
// say.
func (s *shop) as(user string, verbs ...string) client.Client {
	s.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
	s.create(&rbacv1.Role{ObjectMeta: s.named(user), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"abreleases"}, Verbs: append([]string{"get", "update", "patch"}, verbs...),
	}}})
	s.create(&rbacv1.RoleBinding{ObjectMeta: s.named(user), RoleRef: ref, Subjects: []rbacv1.Subject{subject}})
	s.must(apiserver.AwaitBound(s.Context(), s.c.admin, subject, s.name, ref))
	as, err := client.New(apiserver.Impersonate(s.c.server.Config, user), client.Options{Scheme: s.c.admin.Scheme()})
	s.must(err)
	return as
}
