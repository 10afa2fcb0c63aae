// SPDX-License-Identifier: Apache-2.0

package release

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestReport(t *testing.T) {
	hostile := failed()
	in := hostile.Status.Rollout
	const attack = "<script>alert(1)</script> | [x](https://example.org) ![y](z) `a` **b**\n# c"
	in.Run.To.Image, in.Run.Message, in.Run.StrategyName, in.History[0].Message, in.History[0].Event = attack, attack, attack, attack, attack
	in.Waiting.Message, in.Waiting.Reason, in.Analysis.Message, in.Rejected[0].Image, in.Rejected[0].Hash = attack, attack, attack, attack, attack
	in.Run.Stages[0].Message, in.Run.Stages[0].ApprovedBy = attack, attack
	bet := v1alpha1.HealthComparison{EValue: attack, FailsAt: attack, Dispersion: attack, Ratio: attack, RatioLow: attack, RatioHigh: attack}
	in.Analysis.Errors, in.Analysis.Latency, in.Analysis.Stages[0].Errors, in.Analysis.Stages[0].Verdict = &bet, &bet, &bet, attack
	in.Analysis.Variations[0].Variation, in.Analysis.Variations[0].SlowRate, in.Analysis.Variations[1].HealthPercentage = attack, attack, attack
	in.Analysis.Stages[0].Variations[0].Variation = attack
	static := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	for name, tc := range map[string]struct {
		release *v1alpha1.ABRelease
		format  string
	}{
		"running.md": {rolling(), "markdown"}, "rolled-back.html": {failed(), "html"},
		"hostile.html": {hostile, "html"}, "hostile.md": {hostile, "markdown"},
		"static.html": {static, "html"}, "static.md": {static, "markdown"},
		"hybrid.md": {pairing(), "markdown"}, "hybrid.html": {pairing(), "html"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: []client.Object{tc.release.DeepCopy()}}.Run(t, commands, "", "release", "report", "web", "-o", tc.format)
			if got.Code != 0 || got.Stderr != "" {
				t.Fatalf("%+v", got)
			}
			if active := regexp.MustCompile(`(?i)<script|src=|href=|url\(|@import`).FindString(got.Stdout); active != "" {
				t.Errorf("the report has %q", active)
			}
			if tc.format == "markdown" && regexp.MustCompile("(^|[^\\\\])[`\\[]").MatchString(strings.ReplaceAll(got.Stdout, "\\\\", "")) {
				t.Error("a sign of Markdown is not escaped")
			}
			golden.Check(t, "testdata/report-"+name+".txt", got.Stdout)
		})
	}
	got := clitest.Cluster{Objects: []client.Object{rolling()}}.Run(t, commands, "", "release", "report", "web")
	golden.Check(t, "testdata/report-running.md.txt", got.Stdout)
	if got := clitest.RunOffline(t, commands, "", "release", "report", "web", "-o", "pdf"); got.Code != 1 {
		t.Errorf("another format: %+v", got)
	}
}
