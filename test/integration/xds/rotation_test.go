// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Two proxies run on while the authority changes and the server is restarted. One has
// the new bundle in its volume by then and comes back by itself; the other one, whose
// volume is late, trusts nobody until it has it, and keeps what it had.
func TestAProxyComesBackThroughAnotherAuthority(t *testing.T) {
	const settle = "--certificate-settle=3s"
	r := shared.start(t, "one", settle)
	s := shared.shop(t, enabled)
	s.divided("web")
	s.awaitCopy()
	former := s.copied().Data[inject.CAKey]
	front := s.sidecar(r, "front-0", former, []string{"web"})
	late := s.sidecar(r, "front-1", former, []string{"web"})
	release := s.release("web", 0)
	s.acknowledged(release, 0, "2/2")
	for _, proxy := range []*sidecar{front, late} {
		backend.Answers(t, patience, proxy.front["web"], "200 stable")
	}

	var both string
	s.newAuthority(r, former, func(published string) {
		both = published
		front.project(both)
	})
	s.must(r.Stop())
	front.connected(false)
	late.connected(false)
	always(t, front.front["web"], "200 stable")
	again := shared.startAt(t, r.address, "one", settle)
	if _, err := again.shake(t.Context(), former); err == nil {
		t.Fatal("the restarted server's certificate is of the former authority")
	}

	s.shift(release, 100)
	backend.Answers(t, patience, front.front["web"], "200 canary")
	always(t, front.front["web"], "200 canary")
	if front.refuses() {
		t.Error("the proxy that has the new bundle has refused a certificate")
	}
	poll.True(t, patience, "the late one refuses the certificate", late.refuses)
	s.acknowledged(release, 100, "1/2")
	s.wait(release, patience, "the late one is named", func(r *v1alpha1.ABRelease) bool {
		return len(r.Status.Acknowledged.OutOfSync) == 1 && r.Status.Acknowledged.OutOfSync[0].Name == s.name+"/front-1"
	})
	always(t, late.front["web"], "200 stable")

	late.project(both)
	backend.Answers(t, patience, late.front["web"], "200 canary")
	s.acknowledged(release, 100, "2/2")
}

// newAuthority forces a change of authority. It waits until the namespace has both, and
// then until the replica's certificate is of the new one.
func (s *shop) newAuthority(r *replica, former string, published func(both string)) {
	s.Helper()
	before, err := r.shake(s.Context(), former)
	s.must(err)
	s.must(s.c.admin.Delete(s.Context(), &corev1.Secret{ObjectMeta: system("plumbline-xds")}))
	var both string
	poll.True(s.T, patience, "both authorities are published", func() bool {
		both = s.copied().Data[inject.CAKey]
		return both != former
	})
	published(both)
	poll.Until(s.T, patience, "the certificate is of the new authority", func() error {
		now, err := r.shake(s.Context(), both)
		if err == nil && bytes.Equal(now.AuthorityKeyId, before.AuthorityKeyId) {
			err = errors.New("it is of the former one")
		}
		return err
	})
}
