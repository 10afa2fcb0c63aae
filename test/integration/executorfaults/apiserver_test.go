// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnAPIServerThatIsKilledWhileAPlanIsUnderWay starts it again at the same
// address; etcd runs on.
func TestAnAPIServerThatIsKilledWhileAPlanIsUnderWay(t *testing.T) {
	c := ownCluster(t)
	c.startAssessor(t)
	remediation.Rollouts(t, c.Config)
	moments := []string{reserved, intended, effect, verified}
	worlds := c.prepared(t, len(moments))
	for i, moment := range moments {
		t.Run("after "+moment, func(t *testing.T) {
			w, f := worlds[i].Within(t), newFiles(t)
			defer w.Forget()
			plan := w.planned()
			e := c.start(t, f, "stop:after:"+moment)
			e.stopped()
			w.Must(apiserver.Restart(c.server))
			e.goesOn()
			w.succeeded(plan, f)
		})
	}
}

// ownCluster is a cluster of one test, whose API server can be restarted.
func ownCluster(t *testing.T) *cluster {
	t.Helper()
	c, err := startCluster(t.Context(), t.TempDir(), apiserver.CertificatesIn(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return c
}
