// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// failed is a release whose run 7 was rolled back.
func failed() *v1alpha1.ABRelease {
	r := rolling()
	in := r.Status.Rollout
	in.Stage, in.Run.State, in.Run.Reason, in.Run.Message = 0, "RolledBack", "StageFailed", "stage 2 failed: e 300, fails at 200"
	in.Run.CompletionTime = new(clitest.Before(time.Minute))
	in.Analysis.Verdict, in.Analysis.Message = "Fail", "MoreErrors: 4.1% errors"
	in.Waiting = &v1alpha1.RolloutWait{Reason: "RevisionRejected", StartTime: clitest.Before(time.Minute), Message: "shop:2 was rejected: ask to try it again, or deploy another revision"}
	in.Rejected = []v1alpha1.RejectedRevision{{VariationRevision: in.Run.To, Run: 7, Reason: "StageFailed", RejectionTime: clitest.Before(time.Minute)}}
	return r
}

// A run that has ended shows its last verdict.
func TestGet_OfARunThatHasEnded(t *testing.T) {
	got := clitest.Cluster{Objects: []client.Object{failed()}}.Run(t, commands, "", "release", "get", "web")
	if got.Code != 0 || got.Stderr != "" {
		t.Fatalf("%+v", got)
	}
	golden.Check(t, "testdata/get-rolled-back.txt", got.Stdout)
}

func TestWhy(t *testing.T) {
	unstarted := rolling()
	unstarted.Status.Rollout.Run, unstarted.Status.Rollout.Waiting = nil, nil
	static := rolling()
	static.Spec.Rollout = nil
	strategy := &v1alpha1.RolloutStrategy{ObjectMeta: metav1.ObjectMeta{Name: "canary"}, Spec: v1alpha1.RolloutStrategySpec{Stages: []v1alpha1.RolloutStage{
		{TrafficPercentage: new(v1alpha1.Percent(10)), Duration: &metav1.Duration{Duration: time.Minute}}, {TrafficPercentage: new(v1alpha1.Percent(100))},
	}}}
	for name, tc := range map[string]struct {
		release *v1alpha1.ABRelease
		args    []string
	}{
		"running": {rolling(), nil}, "rolled-back": {failed(), nil}, "rolled-back-json": {failed(), []string{"-o", "json"}},
		"without-a-run": {unstarted, nil}, "without-a-rollout": {static, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: []client.Object{tc.release, strategy}}.Run(t, commands, "", append([]string{"release", "why", "web"}, tc.args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Fatalf("%+v", got)
			}
			golden.Check(t, "testdata/why-"+name+".txt", got.Stdout)
		})
	}
}
