// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M6: what the API server has of a release and of sequences is put back, as a restore of etcd
// does. The proxy has a later sequence, and follows the release all the same.
func TestAProxyFollowsAReleaseThatWasPutBack(t *testing.T) {
	for name, restart := range map[string]bool{"while the leader goes on": false, "while nobody leads": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := shopWithTwo(t)
			r := s.start(asksProxies)
			proxy, front := s.proxy(r, "front-0")
			current := s.release("web", "{type: Percentage, percentages: {stable: 100, canary: 0}}")
			s.split(current, "stable 100 / canary 0")
			s.must(admin.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: current.Name}, current))
			once, ledger := current.DeepCopy(), s.ledger()
			for _, canary := range []int{50, 100} {
				s.patch(current, fmt.Sprintf("spec: {trafficSplit: {type: Percentage, percentages: {stable: %d, canary: %d}}}", 100-canary, canary))
				s.split(current, fmt.Sprintf("stable %d / canary %d", 100-canary, canary))
			}
			last := current.Status.Effective.Sequence
			s.carries(proxy, last)
			reaches(t, front, "200 canary")

			if restart {
				r.stop()
			}
			s.putBack(once)
			s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				m := s.ledger()
				m.Data[s.key()] = ledger.Data[s.key()]
				return admin.Update(t.Context(), m)
			}))
			if restart {
				s.startAt(r.address, r, asksProxies)
				s.connected(proxy)
			}
			above(t, proxy, last)
			reaches(t, front, "200 stable")
			s.wait(current, "all proxies have acknowledged it", func(r *v1alpha1.ABRelease) bool {
				return r.Status.Acknowledged != nil && r.Status.Acknowledged.Knowledge == v1alpha1.AcknowledgedProven && r.Status.Acknowledged.Proxies == 1 &&
					r.Status.Effective.Sequence > last && r.Status.Split == "stable 100 / canary 0"
			})
		})
	}
}

// putBack has the release be what it was once.
func (s *shop) putBack(once *v1alpha1.ABRelease) {
	s.t.Helper()
	name := types.NamespacedName{Namespace: once.Namespace, Name: once.Name}
	for _, write := range []func(*v1alpha1.ABRelease) error{
		func(r *v1alpha1.ABRelease) error {
			r.Status = once.Status
			return admin.Status().Update(s.t.Context(), r)
		},
		func(r *v1alpha1.ABRelease) error { r.Spec = once.Spec; return admin.Update(s.t.Context(), r) },
		func(r *v1alpha1.ABRelease) error {
			r.Status = once.Status
			return admin.Status().Update(s.t.Context(), r)
		},
	} {
		s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			var r v1alpha1.ABRelease
			s.must(admin.Get(s.t.Context(), name, &r))
			return write(&r)
		}))
	}
}

// above waits until a proxy has a later sequence.
func above(t *testing.T, proxy *envoy.Envoy, last int64) {
	t.Helper()
	poll.Until(t, patience, "the proxy has a later sequence", func() error {
		is, err := sequence(t, proxy)
		if err == nil && is <= last {
			err = fmt.Errorf("it has %d after %d", is, last)
		}
		return err
	})
}
