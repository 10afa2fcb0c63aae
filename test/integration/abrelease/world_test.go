// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
)

func (s *shop) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) create(object client.Object) {
	s.t.Helper()
	s.must(admin.Create(s.t.Context(), object))
}

// service on port 80, which no label manages. Each of its pods has a port of its own.
func (s *shop) service(name string) {
	s.t.Helper()
	s.create(&corev1.Service{ObjectMeta: s.named(name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name, "version": "stable"},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
	}})
}

// backend is a pod of a version, which answers with its version.
func (s *shop) backend(name, app, version string) *corev1.Pod {
	s.t.Helper()
	return s.backendAt(name, app, version, backend.Start(s.t, version))
}

// backendAt is a pod whose application listens there.
func (s *shop) backendAt(name, app, version, address string) *corev1.Pod {
	s.t.Helper()
	at := netip.MustParseAddrPort(address)
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(at.Port())}},
	}}}}
	pod.Labels = map[string]string{"app": app, "version": version}
	s.create(pod)
	pod.Status.PodIPs = []corev1.PodIP{{IP: at.Addr().String()}}
	pod.Status.PodIP = at.Addr().String()
	s.ready(pod, true)
	return pod
}

// ready says of a pod whether it is.
func (s *shop) ready(pod *corev1.Pod, ready bool) {
	s.t.Helper()
	pod.Status.Phase = corev1.PodRunning
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	s.must(admin.Status().Update(s.t.Context(), pod))
}

// shopWithTwo has a service web with a stable pod and a canary.
func shopWithTwo(t testing.TB) (s *shop, canary *corev1.Pod) {
	t.Helper()
	s = newShop(t)
	s.service("web")
	s.backend("web-stable", "web", "stable")
	return s, s.backend("web-canary", "web", "canary")
}

// release of the service web with two versions; split is the YAML of its traffic split.
func (s *shop) release(name, split string) *v1alpha1.ABRelease {
	s.t.Helper()
	r := &v1alpha1.ABRelease{ObjectMeta: s.named(name)}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: stable, selector: {matchLabels: {app: web, version: stable}}}
- {name: canary, selector: {matchLabels: {app: web, version: canary}}}
trafficSplit: `+split), &r.Spec))
	s.create(r)
	return r
}

// patch a release with YAML.
func (s *shop) patch(r *v1alpha1.ABRelease, patch string) {
	s.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(patch))
	s.must(err)
	s.must(admin.Patch(s.t.Context(), r, client.RawPatch("application/merge-patch+json", body)))
}

// wait until a release is so; is says what is missing.
func (s *shop) wait(r *v1alpha1.ABRelease, what string, is func(*v1alpha1.ABRelease) bool) {
	s.t.Helper()
	poll.Until(s.t, patience, what, func() error {
		if err := admin.Get(s.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if !is(r) {
			body, err := yaml.Marshal(r.Status)
			if err != nil {
				return err
			}
			return fmt.Errorf("its status is\n%s", body)
		}
		return nil
	})
}

// split waits until a split is in force.
func (s *shop) split(r *v1alpha1.ABRelease, text string) {
	s.t.Helper()
	s.wait(r, text+" is in force", func(r *v1alpha1.ABRelease) bool { return r.Status.Split == text })
}

// both versions, as the variations of a release.
const both = `[{name: stable, selector: {matchLabels: {app: web, version: stable}}}, {name: canary, selector: {matchLabels: {app: web, version: canary}}}]`

// told waits until somebody was told of a release with this reason and text.
func (s *shop) told(r *v1alpha1.ABRelease, reason, text string) {
	s.t.Helper()
	poll.Until(s.t, patience, "an Event "+reason+" with "+text, func() error {
		var all eventsv1.EventList
		if err := admin.List(s.t.Context(), &all, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var others []string
		for i := range all.Items {
			e := &all.Items[i]
			if e.Regarding.UID == r.UID && e.Reason == reason && contains(e.Note, text) {
				return nil
			}
			others = append(others, e.Regarding.Name+": "+e.Reason+": "+e.Note)
		}
		return fmt.Errorf("there are %q", others)
	})
}

func contains(text, part string) bool { return strings.Contains(text, part) }

// manage gives a Service the label, so that it is served without a release too.
func (s *shop) manage(name string) {
	s.t.Helper()
	svc := &corev1.Service{ObjectMeta: s.named(name)}
	s.must(admin.Patch(s.t.Context(), svc, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+ir.Managed+`": "true"}}}`))))
}

func (s *shop) slice(service, address string) *discoveryv1.EndpointSlice {
	at := netip.MustParseAddrPort(address)
	meta := s.named(service + "-0")
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(at.Port()))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
}

// quarantine a workload, as its Baseline says it.
func (s *shop) quarantine(kind, name string) {
	s.t.Helper()
	b := &v1alpha1.Baseline{ObjectMeta: s.named("guarded-" + name)}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "v1", Kind: kind, Name: name}
	s.create(b)
	b.Status.Quarantine = &v1alpha1.Quarantine{StartTime: metav1.Now(), By: "alice"}
	s.must(admin.Status().Update(s.t.Context(), b))
}

// connected waits until a proxy has a stream.
func (s *shop) connected(e *envoy.Envoy) {
	s.t.Helper()
	poll.Until(s.t, patience, "the proxy is connected", func() error {
		n, err := e.Stat(s.t.Context(), "control_plane.connected_state")
		if err == nil && n != 1 {
			err = fmt.Errorf("it is not")
		}
		return err
	})
}

func (s *shop) token(pod *corev1.Pod) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{identity.Audience}, ExpirationSeconds: new(int64(600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	s.must(admin.SubResource("token").Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: s.named("front")}, request))
	return request.Status.Token
}

// client is a pod with a proxy, which nobody runs.
func (s *shop) client(name string, annotations map[string]string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Annotations = annotations
	proxypod.Inject(pod, inject.Redirect)
	s.create(pod)
	proxypod.Place(pod)
	s.must(admin.Status().Update(s.t.Context(), pod))
	return pod
}

// proxy is a sidecar of a new pod, with a local port for the service web.
func (s *shop) proxy(r *replica, name string) (e *envoy.Envoy, front string) {
	s.t.Helper()
	return s.sidecar(r, s.client(name, nil))
}

// sidecar of a pod, with a local port for the service web.
func (s *shop) sidecar(r *replica, pod *corev1.Pod) (e *envoy.Envoy, front string) {
	s.t.Helper()
	front = freeport.Address(s.t)
	options := envoy.Options{Address: r.address, Authority: r.authority, Node: pod.Namespace + "/" + pod.Name, Token: s.token(pod)}
	port := ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}
	options.Listeners = append(options.Listeners, envoyxds.Local(ir.Service{Namespace: s.namespace, Name: "web"}, port, netip.MustParseAddrPort(front)))
	return envoy.Start(s.t, options), front
}
