// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Finding H4: a proxy that is silent while its pod is not Ready counts as gone. One whose pod is
// Ready holds the release after the deadline, or the release goes on without it, as its owner says.
func TestAReleaseDoesNotWaitForEverForASilentProxy(t *testing.T) {
	s, _ := shopWithTwo(t)
	s.silence = time.Second
	r := s.start(asksProxies)
	s.proxy(r, "front-0")
	s.runs("front-0")
	lost := s.client("lost-0", nil)
	s.ready(lost, false)
	release := s.release("web", "{type: Percentage, percentages: {stable: 90, canary: 10}}")
	name := s.namespace + "/lost-0"
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1; not counted: "+name+" (counts as gone: its pod is not Ready)")
	s.says(release, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	if gone := release.Status.Acknowledged.Gone; len(gone) != 1 || gone[0].Name != name {
		t.Errorf("gone are %+v", gone)
	}

	s.ready(lost, true)
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "1 of 2 proxies have acknowledged sequence 1; not "+name)
	s.decidedBefore(release, time.Hour)
	s.stalled(release, "DeadlineExceeded", name)
	s.stalled(release, "DeadlineExceeded", "the deadline of 10m0s is over; mend these proxies, delete their pods, or set spec.acknowledgment.onTimeout to Proceed")
	if meta.IsStatusConditionTrue(release.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("it is Ready over a proxy that has not acknowledged")
	}

	s.patch(release, "spec: {acknowledgment: {onTimeout: Proceed}}")
	s.says(release, v1alpha1.ConditionReady, metav1.ConditionTrue, "the release goes on without them")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, name)
	s.patch(release, "spec: {acknowledgment: {onTimeout: Hold}}")
	s.stalled(release, "DeadlineExceeded", name)

	s.must(admin.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
	s.says(release, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// decidedBefore says in the status of a release that its split has been in force for a time.
func (s *shop) decidedBefore(r *v1alpha1.ABRelease, by time.Duration) {
	s.t.Helper()
	at := time.Now().Add(-by).UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"status": {"effectiveTime": %q}}`, at)
	s.must(admin.Status().Patch(s.t.Context(), r, client.RawPatch("application/merge-patch+json", []byte(body))))
}

// Findings M9 and M10: what proxies do not follow of a Service is read on its release.
func TestAReleaseTellsWhatProxiesDoNotFollowOfItsService(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	s.proxy(r, "front-0")
	s.runs("front-0")
	svc := &corev1.Service{ObjectMeta: s.named("web")}
	s.edit(svc, func() {
		svc.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameZone)
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	})
	if len(svc.Spec.ClusterIPs) != 2 {
		t.Fatalf("the Service has the addresses %v", svc.Spec.ClusterIPs)
	}
	release := s.release("web", "{type: Percentage, percentages: {stable: 90, canary: 10}}")
	s.says(release, v1alpha1.ConditionReady, metav1.ConditionTrue, "proxies do not follow its trafficDistribution PreferSameZone")
	s.says(release, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "clients that connect to "+svc.Spec.ClusterIPs[1]+" of Service web bypass the split")

	s.edit(svc, func() {
		svc.Spec.TrafficDistribution, svc.Spec.IPFamilyPolicy = nil, new(corev1.IPFamilyPolicySingleStack)
		svc.Spec.IPFamilies, svc.Spec.ClusterIPs = svc.Spec.IPFamilies[:1], svc.Spec.ClusterIPs[:1]
	})
	s.wait(release, "the release tells of neither", func(r *v1alpha1.ABRelease) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionTrue && !contains(c.Message, "trafficDistribution") &&
			meta.IsStatusConditionFalse(r.Status.Conditions, v1alpha1.ConditionDegraded)
	})
}
