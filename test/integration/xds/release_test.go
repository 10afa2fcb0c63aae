// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// divided makes a managed Service with a pod stable, which it selects, and a pod canary.
// Each answers with its version.
func (s *shop) divided(name string) {
	s.Helper()
	s.selecting(name)
	for _, version := range []string{"stable", "canary"} {
		s.serving(name+"-"+version, name, version, backend.Start(s.T, version))
	}
}

// selecting makes a managed Service that selects pods of the version stable.
func (s *shop) selecting(name string) *corev1.Service {
	s.Helper()
	meta := s.named(name)
	meta.Labels = map[string]string{ir.Managed: "true"}
	svc := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name, "version": "stable"},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
	}}
	s.create(svc)
	return svc
}

// serving is a ready pod of a version, whose application listens at an address.
func (s *shop) serving(name, app, version, address string) *corev1.Pod {
	s.Helper()
	at := netip.MustParseAddrPort(address)
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(at.Port())}},
	}}}}
	pod.Labels = map[string]string{"app": app, "version": version}
	s.create(pod)
	s.ready(pod, at.Addr().String())
	return pod
}

// release divides a Service of [shop.divided]; the canary gets so many per cent.
func (s *shop) release(service string, canary int) *v1alpha1.ABRelease {
	s.Helper()
	return s.releaseBy(service, canary, "type: Percentage")
}

// releaseBy is release by a rule of the YAML of a traffic split.
func (s *shop) releaseBy(service string, canary int, rule string) *v1alpha1.ABRelease {
	s.Helper()
	r := &v1alpha1.ABRelease{ObjectMeta: s.named(service)}
	s.must(yaml.UnmarshalStrict(fmt.Appendf(nil, `
serviceName: %[1]s
stable: stable
variations:
- {name: stable, selector: {matchLabels: {app: %[1]s, version: stable}}}
- {name: canary, selector: {matchLabels: {app: %[1]s, version: canary}}}
trafficSplit: {%[2]s, percentages: {stable: %[3]d, canary: %[4]d}}`, service, rule, 100-canary, canary), &r.Spec))
	s.create(r)
	return r
}

// shift gives the canary another share.
func (s *shop) shift(r *v1alpha1.ABRelease, canary int) {
	s.Helper()
	patch := fmt.Sprintf(`{"spec": {"trafficSplit": {"percentages": {"stable": %d, "canary": %d}}}}`, 100-canary, canary)
	s.must(s.c.admin.Patch(s.Context(), r, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// wait until a release is so.
func (s *shop) wait(r *v1alpha1.ABRelease, limit time.Duration, what string, is func(*v1alpha1.ABRelease) bool) {
	s.Helper()
	poll.Until(s.T, limit, what, s.look(r, is))
}

// look reads a release and checks it.
func (s *shop) look(r *v1alpha1.ABRelease, is func(*v1alpha1.ABRelease) bool) func() error {
	return func() error {
		if err := s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(r), r); err != nil {
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
	}
}

// acknowledged waits until a split is in force and so many proxies of all have it.
func (s *shop) acknowledged(r *v1alpha1.ABRelease, canary int, count string) {
	s.Helper()
	split := fmt.Sprintf("stable %d / canary %d", 100-canary, canary)
	is := func(r *v1alpha1.ABRelease) bool {
		return r.Status.Split == split && r.Status.Acknowledged != nil && r.Status.Acknowledged.Count == count
	}
	poll.Confirmation.Until(s.T, patience, split+" is in force and acknowledged by "+count, s.look(r, is))
}

// holds says of a condition whether it is True, and its message.
func holds(r *v1alpha1.ABRelease, kind string) (bool, string) {
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	if c == nil {
		return false, ""
	}
	return c.Status == "True", c.Message
}

// always demands that so many requests are answered so.
func always(t *testing.T, address, want string) {
	t.Helper()
	for range 50 {
		if got := backend.Get(t, address); got != want {
			t.Fatalf("%s answers %q, want %q", address, got, want)
		}
	}
}
