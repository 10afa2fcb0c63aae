// SPDX-License-Identifier: Apache-2.0

//go:build integration

package disturbed

import (
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnAPIServerThatIsKilledWhileAPlanIsUnderWay starts it again at the same
// address; etcd runs on.
func TestAnAPIServerThatIsKilledWhileAPlanIsUnderWay(t *testing.T) {
	c := shared.StartAnother(t, apiserver.CertificatesIn(t.TempDir()))
	c.StartAssessor(t)
	remediation.Rollouts(t, c.Config)
	moments := []string{failpoint.Claimed, failpoint.Intended, failpoint.Effect, failpoint.Verified}
	worlds := c.MakeWorlds(t, len(moments))
	for i, moment := range moments {
		t.Run("after "+moment, func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			e := c.Start(t, f, "stop:after:"+moment)
			e.UntilStopped()
			w.Must(apiserver.Restart(c.Server))
			e.GoOn()
			w.UntilSucceeded(plan, f)
		})
	}
}
