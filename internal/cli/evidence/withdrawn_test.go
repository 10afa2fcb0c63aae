// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func TestEvidence_ShowsAWithdrawnDecisionAsWithdrawn(t *testing.T) {
	a := filled(t)
	never := clitest.DecisionOf(evidence.KindPlanFinished, "done", clitest.Now.Add(-2*time.Minute))
	never.Result.State = "Succeeded"
	a.Append(never)
	withdrawn := clitest.DecisionOf(evidence.KindDecisionWithdrawn, "done", clitest.Now.Add(-time.Minute))
	withdrawn.Withdraws = &evidence.Head{Sequence: a.Head.Sequence, Digest: a.Head.Digest}
	a.Append(withdrawn)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"verify":         {[]string{"verify"}, []string{"#6 is withdrawn by #7: it was decided and never stored", "Whole: 7 records"}},
		"verify as JSON": {[]string{"verify", "-o", "json"}, []string{`"withdrawn": [`, `"sequence": 6,`, `"by": 7`}},
		"get":            {[]string{"get", "done"}, []string{"#6  PlanFinished: Succeeded", "by #7: this was decided and never stored", "#7  DecisionWithdrawn", "#6, which was decided and never stored"}},
		"get as JSON":    {[]string{"get", "done", "-o", "json"}, []string{`"withdrawnBy": 7`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", append([]string{"evidence", "--evidence", a.Dir}, tc.args...)...)
			for _, want := range tc.want {
				if got.Code != 0 || !strings.Contains(got.Stdout, want) {
					t.Errorf("%q is missing in %d\n%s%s", want, got.Code, got.Stdout, got.Stderr)
				}
			}
		})
	}
}
