// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"path/filepath"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// M6 of the review of the mesh, with the store itself: etcd is restored from a backup of two decisions
// ago, with its revisions. The proxy has later sequences, and follows the release of the backup. The
// server is restarted, as Kubernetes asks of all that watches: one that runs on watches from a revision
// that is yet to come.
func TestAProxyFollowsAnEtcdThatWasRestored(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it waits for long, and for nothing of others
	c := ownCluster(t, manifest, apiserver.StoreIn(t.TempDir()))
	r := c.start(t, "one")
	s := c.shop(t, enabled)
	s.divided("web")
	release := s.release("web", 0)
	s.awaitCopy()
	front := s.sidecar(r, "front-0", s.copied().Data[inject.CAKey], []string{"web"}).front["web"]
	s.acknowledged(release, 0, "1/1")
	backup := filepath.Join(t.TempDir(), "backup")
	s.must(apiserver.Backup(c.server, backup))
	for _, canary := range []int{50, 100} {
		s.shift(release, canary)
		s.acknowledged(release, canary, "1/1")
	}
	last := release.Status.Effective.Sequence
	always(t, front, "200 canary")

	s.must(apiserver.Restore(c.server, backup))
	s.must(r.Stop())
	c.startAt(t, r.address, "one")
	s.wait(release, long, "the release of the backup is in force, above all sequences", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Effective != nil && r.Status.Effective.Sequence > last && r.Status.Split == "stable 100 / canary 0" &&
			r.Status.Acknowledged != nil && r.Status.Acknowledged.Knowledge == v1alpha1.AcknowledgedProven && r.Status.Acknowledged.Proxies == 1
	})
	always(t, front, "200 stable")
}
