// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// way by which a Service comes into the mesh and leaves it.
type way struct {
	name        string
	come, leave func()
	// lasts says that the load goes on for leftFor in the long test.
	lasts bool
}

// leftFor is longer than the server kept clusters of a Service that had left, which was 30 s.
const leftFor = 40 * time.Second

func (r *redirected) ways() []way {
	svc := &corev1.Service{ObjectMeta: r.services.named("web")}
	label := func(is bool) func() {
		return func() {
			r.services.edit(svc, func() {
				if delete(svc.Labels, ir.Managed); is {
					svc.Labels = map[string]string{ir.Managed: "true"}
				}
			})
		}
	}
	affinity := func(a corev1.ServiceAffinity) func() {
		return func() {
			r.services.edit(svc, func() { svc.Spec.SessionAffinity, svc.Spec.SessionAffinityConfig = a, nil })
		}
	}
	needs := func(upstreams string) func() {
		return func() {
			r.edit(r.pod, func() { r.pod.Annotations = map[string]string{discovery.UpstreamsAnnotation: upstreams} })
		}
	}
	edit := func(change func()) func() { return func() { r.services.edit(svc, change) } }
	port := func(name string) func() { return edit(func() { svc.Spec.Ports[0].Name = name }) }
	policy := func(p corev1.ServiceInternalTrafficPolicy) func() {
		return edit(func() { svc.Spec.InternalTrafficPolicy = &p })
	}
	exports := func(to string) func() {
		return edit(func() { svc.Annotations = map[string]string{ir.ExportToAnnotation: to} })
	}
	var release *v1alpha1.ABRelease
	divided := func() {
		release = r.services.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	}
	return []way{
		{"the label, put on and taken off", label(true), label(false), false},
		{"its only release, made and deleted", divided, func() { r.must(admin.Delete(r.t.Context(), release)) }, true},
		{"accepted, and refused for a session affinity", label(true), affinity(corev1.ServiceAffinityClientIP), false},
		{"accepted again, and its name taken out of an annotation", affinity(corev1.ServiceAffinityNone), needs(""), false},
		{"its name put back, and refused", needs(r.services.namespace + "/web"), affinity(corev1.ServiceAffinityClientIP), false},
		{"accepted once more, and its port renamed", affinity(corev1.ServiceAffinityNone), port("tcp"), false},
		{"its port named again, and requests kept on their node", port("http"), policy(corev1.ServiceInternalTrafficPolicyLocal), false},
		{"requests to all nodes, and consent withdrawn", policy(corev1.ServiceInternalTrafficPolicyCluster), exports("elsewhere"), false},
		{"consent given, and deleted", exports("*"), func() { r.must(admin.Delete(r.t.Context(), svc)) }, false},
	}
}

// H1 and M4 of the review of the mesh, on listeners that Envoy drains: requests of clients that have
// kept their connections since before the Service came, of others since after, and WebSockets.
func TestNoRequestIsLostWhileAServiceComesAndLeaves(t *testing.T) {
	r := startRedirected(t, startUpstream(t))
	for _, way := range r.ways() {
		t.Run(way.name, func(t *testing.T) {
			before := startLoad(t, r.outbound, r.service)
			before.answered(30)
			way.come()
			r.managed(true)
			after := startLoad(t, r.outbound, r.service)
			after.answered(30)
			kept := keepConnection(t, after)
			r.through("http.outbound.downstream_cx_active", func(n int) bool { return n > protocols })
			r.through("cluster.passthrough.upstream_cx_active", func(n int) bool { return n >= protocols })
			before.answered(30)
			way.leave()
			r.managed(false)
			after.answered(100)
			r.through("http.outbound.downstream_cx_active", func(n int) bool { return n == 2 }) // the WebSocket, and what is idle
			after.answered(30)
			if way.lasts && os.Getenv(seed.Long) == "1" {
				after.answered(int(2 * leftFor / every)) // HTTP/1.1 and HTTP/2
			}
			kept.answers()
			before.noneFailed()
			after.noneFailed()
		})
	}
}

// M12 of the review of the mesh: the order of the guide. The pod is made anew without a proxy while
// the one before ends, and the discovery server goes last.
func TestNoRequestIsLostInTheOrderOfAnUninstallation(t *testing.T) {
	upstream := startUpstream(t)
	r := startRedirected(t, upstream)
	r.services.manage("web")
	release := r.services.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	r.managed(true)
	pod := startLoad(t, r.outbound, r.service)
	r.through("http.outbound.downstream_cx_active", func(n int) bool { return n >= protocols })
	pod.answered(30)

	r.must(admin.Delete(t.Context(), release))
	svc := &corev1.Service{ObjectMeta: r.services.named("web")}
	r.services.edit(svc, func() { delete(svc.Labels, ir.Managed) })
	r.managed(false)
	pod.answered(50)
	again := startLoad(t, upstream, "")
	again.answered(30)
	pod.end()
	pod.noneFailed()
	r.envoy.Stop()
	r.server.stop()
	again.answered(50)
	again.noneFailed()
}

// M4 of the review of the mesh: every proxy has acknowledged, and a pod may have kept a connection.
func TestASplitIsNotInForceOverConnectionsThatAreOlder(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.oldConnections = 3 * time.Second
	r := s.start(asksProxies)
	pod := s.client("front-0", nil)
	proxy, _ := s.sidecar(r, pod)
	// The API server keeps whole seconds: the release has to be of a later one.
	poll.True(t, patience, "the pod is older than a second", func() bool { return time.Since(pod.CreationTimestamp.Time) > time.Second })
	release := s.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	s.wait(release, "the release is not ready over older connections", func(r *v1alpha1.ABRelease) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionDegraded)
		return c != nil && c.Status == "True" && c.Reason == v1alpha1.ReasonNotYetRedirected && contains(c.Message, s.namespace+"/front-0") && r.Status.Acknowledged.Count == "1/1" &&
			r.Status.Acknowledged.Knowledge == v1alpha1.AcknowledgedUnknown && !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady)
	})
	s.carries(proxy, release.Status.Effective.Sequence)
	s.wait(release, "time has passed", func(r *v1alpha1.ABRelease) bool {
		return meta.IsStatusConditionFalse(r.Status.Conditions, v1alpha1.ConditionDegraded) &&
			r.Status.Acknowledged.Knowledge == v1alpha1.AcknowledgedProven && meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady)
	})
}
