// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	connector "github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/discoveryserver"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// meshes gives each release a recorder, so the mesh has each split at once.
type meshes struct{ recorders sync.Map }

// Router implements abrelease.Routers.
func (m *meshes) Router(release types.NamespacedName) traffic.Router {
	of, _ := m.recorders.LoadOrStore(release, &routertest.Recorder{})
	return of.(*routertest.Recorder) //nolint:forcetypeassert // no other type is stored
}

// delivery is a namespace with a Service, a TrafficRouter, an implementation of Gateway API and a discovery server.
type delivery struct {
	*testing.T
	namespace string
	edge      *edges
	line      *line
	router    *v1alpha1.TrafficRouter
	stop      func()
}

func newDelivery(t *testing.T) *delivery {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	must(t, admin.Create(t.Context(), namespace))
	d := &delivery{T: t, namespace: namespace.Name, edge: &edges{refuses: map[string]string{}}, line: &line{Client: xds}}
	d.create(&rbacv1.RoleBinding{ObjectMeta: d.named("plumbline-xds-routes"), RoleRef: routesRole, Subjects: []rbacv1.Subject{subject}})
	must(t, apiserver.AwaitBound(t.Context(), admin, subject, d.namespace, routesRole))
	d.router = &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}, Spec: v1alpha1.TrafficRouterSpec{
		Type: v1alpha1.TrafficRouterGatewayAPI, AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: d.namespace}},
	}}
	d.create(d.router)
	d.makeApplication()
	d.runGateway()
	d.lead()
	return d
}

// makeApplication makes Service web with a pod of each version.
func (d *delivery) makeApplication() {
	d.Helper()
	d.service("web")
	for i, version := range []string{"stable", "canary"} {
		d.pod(version, fmt.Sprintf("10.1.0.%d", i+1))
	}
}

// runGateway runs the implementation of Gateway API until the end of the test.
func (d *delivery) runGateway() {
	ctx, cancel := context.WithCancel(d.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.edge.run(ctx, d.T, d.namespace) }()
	d.Cleanup(func() { cancel(); <-ended })
}

// lead starts a discovery server that leads.
func (d *delivery) lead() {
	d.Helper()
	certificate, _ := envoy.NewServing(d)
	server := discoveryserver.New(d, config, d.namespace, freeport.Address(d), &certificate, inprocess.Told(d.T))
	server.Releases.Routers = &meshes{}
	server.Releases.Connectors = &connect.Registry{Context: d.Context(), Client: admin, Routes: d.line, Now: time.Now}
	now := make(chan struct{})
	close(now)
	server.Lead = now
	d.stop = server.Start(d, patience)
}

// looks waits until the discovery server has looked at the route several times from now on.
func (d *delivery) looks() {
	d.Helper()
	before := d.line.count(0)
	poll.Until(d, patience, "the route is read ten times more", func() error {
		if n := d.line.count(0) - before; n < 10 {
			return fmt.Errorf("it was read %d times", n)
		}
		return nil
	})
}

func (d *delivery) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: d.namespace, Name: name}
}

// create makes an object for the time of the test.
func (d *delivery) create(object client.Object) {
	d.Helper()
	must(d, admin.Create(d.Context(), object))
	cleanUp(d.T, object)
}

func (d *delivery) service(name string) {
	d.Helper()
	d.create(&corev1.Service{ObjectMeta: d.named(name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}})
}

// pod is a ready pod of a version. The tests send no requests.
func (d *delivery) pod(version, ip string) {
	d.Helper()
	pod := &corev1.Pod{ObjectMeta: d.named("web-" + version), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}}}
	pod.Labels = map[string]string{"app": "web", "version": version}
	d.create(pod)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	must(d, admin.Status().Update(d.Context(), pod))
}

// route makes a route with the Services stable and canary, and with parents.
func (d *delivery) route(name string, parents ...string) *unstructured.Unstructured {
	d.Helper()
	object := d.manifest(name, parents...)
	d.create(object)
	return object
}

func (d *delivery) manifest(name string, parents ...string) *unstructured.Unstructured {
	object := plainRoute(name, "canary")
	object.SetNamespace(d.namespace)
	var refs []any
	for _, parent := range parents {
		refs = append(refs, map[string]any{"name": parent})
	}
	must(d, unstructured.SetNestedSlice(object.Object, refs, "spec", "parentRefs"))
	return object
}

// target is an entry of spec.routers with a route; rule may be empty.
func (d *delivery) target(route, rule string) string {
	if rule != "" {
		rule = ", rule: " + rule
	}
	return fmt.Sprintf("{name: %s, gatewayAPI: {name: %s%s}, services: [{variation: stable, serviceName: stable, port: 80}, {variation: canary, serviceName: canary, port: 80}]}", d.router.Name, route, rule)
}

// release divides Service web between two versions; the canary gets 10 %.
func (d *delivery) release(name string, spec ...string) *v1alpha1.ABRelease {
	d.Helper()
	r := &v1alpha1.ABRelease{ObjectMeta: d.named(name)}
	must(d, yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: stable, selector: {matchLabels: {app: web, version: stable}}}
- {name: canary, selector: {matchLabels: {app: web, version: canary}}}
trafficSplit: {type: Percentage, percentages: {stable: 90, canary: 10}}
`), &r.Spec))
	for _, more := range spec {
		must(d, yaml.UnmarshalStrict([]byte(more), &r.Spec))
	}
	d.create(r)
	return r
}

// split changes the percentage of the canary.
func (d *delivery) split(r *v1alpha1.ABRelease, canary int) {
	d.Helper()
	patch := fmt.Sprintf(`{"spec": {"trafficSplit": {"percentages": {"stable": %d, "canary": %d}}}}`, 100-canary, canary)
	must(d, admin.Patch(d.Context(), r, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// says waits until a condition has a status, and its message a text.
func (d *delivery) says(r *v1alpha1.ABRelease, kind string, is metav1.ConditionStatus, text string) {
	d.Helper()
	poll.Until(d, patience, fmt.Sprintf("%s of release %s is %s with %q", kind, r.Name, is, text), func() error {
		if err := admin.Get(d.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil && c.Status == is && c.ObservedGeneration == r.Generation && strings.Contains(c.Message, text) {
			return nil
		}
		body, err := yaml.Marshal(r.Status)
		if err != nil {
			return err
		}
		return fmt.Errorf("its status is\n%s", body)
	})
}

// weights demands the weights of the Services stable and canary.
func (d *delivery) weights(route string, want ...int64) {
	d.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(connector.HTTPRoute)
	must(d, admin.Get(d.Context(), types.NamespacedName{Namespace: d.namespace, Name: route}, object))
	rules, _, err := unstructured.NestedSlice(object.Object, "spec", "rules")
	must(d, err)
	var got []int64
	for _, b := range rules[0].(map[string]any)["backendRefs"].([]any) {
		got = append(got, b.(map[string]any)["weight"].(int64))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		d.Errorf("the weights are %d, want %d", got, want)
	}
}

// delete deletes a release, and waits until it is gone.
func (d *delivery) delete(r *v1alpha1.ABRelease) {
	d.Helper()
	must(d, admin.Delete(d.Context(), r))
	d.gone(r)
}

func (d *delivery) gone(r *v1alpha1.ABRelease) {
	d.Helper()
	poll.Until(d, patience, "release "+r.Name+" is gone", func() error {
		err := admin.Get(d.Context(), client.ObjectKeyFromObject(r), r)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w) with %v", err, r.Status.Conditions)
	})
}

// told waits for an Event of a release.
func (d *delivery) told(r *v1alpha1.ABRelease, reason, text string) {
	d.Helper()
	poll.Until(d, patience, "an Event "+reason+" with "+text, func() error {
		var all eventsv1.EventList
		if err := admin.List(d.Context(), &all, client.InNamespace(d.namespace)); err != nil {
			return err
		}
		var others []string
		for i := range all.Items {
			if e := &all.Items[i]; e.Regarding.UID == r.UID && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			others = append(others, all.Items[i].Reason+": "+all.Items[i].Note)
		}
		return fmt.Errorf("there are %q", others)
	})
}
