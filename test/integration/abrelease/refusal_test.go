// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What an Envoy says of a route that it refuses is read on the release, and it goes on
// with the route that it has.
func TestWhatAnEnvoyRefusesIsReadOnTheRelease(t *testing.T) {
	s, _ := shopWithTwo(t)
	r := s.start(asksProxies)
	proxy, front := s.proxy(r, "front-0")
	s.runs("front-0")
	release := s.release("web", "{type: Sticky, sticky: {header: x-user}, percentages: {stable: 90, canary: 10}}")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
	before := users(t, front)

	// Of each route it has an expression that is too long for it from now on.
	s.must(proxy.Post(t.Context(), "/runtime_modify?re2.max_program_size.error_level=1"))
	s.patch(release, "spec: {trafficSplit: {percentages: {stable: 10, canary: 90}}}")
	const text = "program size"
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, text)
	s.says(release, v1alpha1.ConditionReconciling, metav1.ConditionTrue, text)
	acknowledged := release.Status.Acknowledged
	if acknowledged == nil || acknowledged.Count != "0/1" || len(acknowledged.OutOfSync) != 1 {
		t.Fatalf("who has acknowledged it: %+v", acknowledged)
	}
	if l := acknowledged.OutOfSync[0]; l.Name != s.namespace+"/front-0" || !strings.Contains(l.Why, text) {
		t.Errorf("the proxy that is out of sync is %+v", l)
	}
	if diff := cmp.Diff(before, users(t, front)); diff != "" {
		t.Errorf("with the route of before (-before +now):\n%s", diff)
	}

	// What is refused is not sent again; the next one is taken.
	s.must(proxy.Post(t.Context(), "/runtime_modify?re2.max_program_size.error_level=1000000"))
	s.patch(release, "spec: {trafficSplit: {overrideHeader: x-variation}}")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 3")
	if c := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReconciling); c != nil && strings.Contains(c.Message, text) {
		t.Errorf("it still says %q", c.Message)
	}
	if cmp.Equal(before, users(t, front)) {
		t.Error("with the next one nobody is elsewhere")
	}
}

// users are fifty, and who answers each.
func users(t *testing.T, address string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for i := range 50 {
		user := fmt.Sprint("user-", i)
		got[user], _ = ask(t, address, "X-User", user)
	}
	return got
}

// runs says of a pod that it does: of one that does not yet, nothing is expected.
func (s *shop) runs(name string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named(name)}
	s.must(admin.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod))
	s.ready(pod, true)
}

// says waits until a condition of a release has a status, and a text in its message.
func (s *shop) says(r *v1alpha1.ABRelease, kind string, is metav1.ConditionStatus, text string) {
	s.t.Helper()
	s.wait(r, kind+" is "+string(is)+": "+text, func(r *v1alpha1.ABRelease) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, kind)
		return c != nil && c.Status == is && contains(c.Message, text)
	})
}
