// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var commands = []clitest.Verb{Command}

// rolling is a release in stage 2 of its run.
func rolling() *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", CreationTimestamp: clitest.Before(time.Hour)}}
	r.Spec = v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "blue", Rollout: &v1alpha1.Rollout{StrategyName: "canary", Pause: v1alpha1.Disabled}}
	r.Spec.Variations = []v1alpha1.Variation{{Name: "blue"}, {Name: "green"}}
	begin, deadline := clitest.Before(20*time.Minute), clitest.Before(-time.Hour)
	r.Status = v1alpha1.ABReleaseStatus{
		Split: "blue 75 / green 25", ActiveVariation: "blue", Acknowledged: &v1alpha1.SplitAcknowledgment{Count: "3/3", Sequence: 1042, Knowledge: v1alpha1.AcknowledgedProven, Proxies: 3, AcknowledgedProxies: 3},
		Effective: &v1alpha1.EffectiveSplit{Sequence: 1042, Variations: []v1alpha1.EffectiveVariation{{Name: "blue", Weight: new(int32(7500))}, {Name: "green", Weight: new(int32(2500))}}},
		Wanted:    []v1alpha1.WantedWeight{{Variation: "blue", Weight: new(int32(7500))}, {Variation: "green", Weight: new(int32(2500))}},
		Observed: []v1alpha1.ObservedVariation{
			{Variation: "blue", ReadyEndpoints: 6, Targets: 6, Requests: new(int64(7460)), InFlight: new(int64(12))},
			{Variation: "green", ReadyEndpoints: 3, Targets: 3, Requests: new(int64(2540)), InFlight: new(int64(4))},
		},
		Rollout: &v1alpha1.RolloutStatus{
			Stage: 2,
			Run: &v1alpha1.RolloutRun{
				Number: 7, State: "Running", StrategyName: "canary", StartTime: begin,
				From: v1alpha1.VariationRevision{Variation: "blue", Image: "shop:1"}, To: v1alpha1.VariationRevision{Variation: "green", Image: "shop:2"},
				Stages: []v1alpha1.RolloutStageStatus{
					{Number: 1, State: "Succeeded", TrafficPercentage: new(v1alpha1.Percent(10)), StartTime: new(clitest.Before(10 * time.Minute)), CompletionTime: new(clitest.Before(298 * time.Second)), DurationSeconds: new(int64(300)), HealthThreshold: new(v1alpha1.Percent(95)), Message: "at most 0.4% errors"},
					{Number: 2, State: "Running", TrafficPercentage: new(v1alpha1.Percent(25)), StartTime: new(clitest.Before(280 * time.Second)), DurationSeconds: new(int64(600)), HealthThreshold: new(v1alpha1.Percent(95)), RequireApproval: v1alpha1.Enabled},
					{Number: 3, State: "Pending", TrafficPercentage: new(v1alpha1.Percent(100)), DurationSeconds: new(int64(0)), HealthThreshold: new(v1alpha1.Percent(95))},
				},
			},
			Waiting: &v1alpha1.RolloutWait{Reason: "Approval", StartTime: begin, DeadlineTime: &deadline, Message: "a person to approve stage 2"},
			Analysis: &v1alpha1.RolloutAnalysis{
				Run: 7, Stage: 2,
				HealthResult: v1alpha1.HealthResult{
					Verdict: "Pass", Message: "WithinThreshold: 0.3% errors", Gaps: 1, SlowerThanMilliseconds: 180,
					Errors:  &v1alpha1.HealthComparison{EValue: "0.8012", FailsAt: "200", Dispersion: "1.1043", Ratio: "1.0691", RatioLow: "0.7802", RatioHigh: "1.4511"},
					Latency: &v1alpha1.HealthComparison{EValue: "0.3001", FailsAt: "200", Dispersion: "1.1043", RatioHigh: "1.9"},
					Variations: []v1alpha1.VariationHealth{
						{Variation: "blue", ErrorRate: "0.31", ErrorRateLow: "0.27", ErrorRateHigh: "0.36", LatencyP50Milliseconds: 12, LatencyP99Milliseconds: 181, Samples: 61204, SlowRate: "1", Cells: 28},
						{Variation: "green", HealthPercentage: "99.52", ErrorRate: "0.33", ErrorRateLow: "0.25", ErrorRateHigh: "0.43", Samples: 20871, SlowRate: "1.2004", Cells: 28},
					},
				},
				Stages: []v1alpha1.StageHealth{{Stage: 1, HealthResult: v1alpha1.HealthResult{
					Verdict: "Pass", Reason: "WithinThreshold", Errors: &v1alpha1.HealthComparison{EValue: "0.5", FailsAt: "200", Dispersion: "1"},
					Variations: []v1alpha1.VariationHealth{
						{Variation: "blue", HealthPercentage: "99.6", ErrorRate: "0.3", ErrorRateLow: "0.25", ErrorRateHigh: "0.36", Samples: 61000, Cells: 30},
						{Variation: "green", HealthPercentage: "99.1", ErrorRate: "0.31", ErrorRateLow: "0.2", ErrorRateHigh: "0.46", Samples: 8112, Cells: 30},
					},
				}}},
			},
			Gates: []v1alpha1.RolloutGateStatus{
				{Kind: "Query", Name: "errors", Event: "DuringStage", Run: 7, Stage: 2, Result: "Wait", Value: "0.75", Failures: 1, AnswerTime: begin, Message: "is above the maximum 0.5; 1 of 3 in a row"},
				{Kind: "Webhook", Name: "board", Event: "BeforePromotion", Run: 7, Result: "Pass", AnswerTime: begin},
			},
			History: []v1alpha1.RolloutEvent{{Number: 1, EventTime: begin, Run: 7, Event: "ab.created", Message: "run 7: green from shop:1 to shop:2\x1b[31m"}},
		},
	}
	return r
}

// working is a release whose canary is a clone, in the stage of rolling.
func working() *v1alpha1.ABRelease {
	r := rolling()
	r.Name, r.Status.Rollout.Gates = "copy", nil
	r.Status.Rollout.Run.Clone = &v1alpha1.RolloutClone{Promotion: v1alpha1.PromotionUpdateBaseline, QueuedTime: new(clitest.Before(2 * time.Minute))}
	r.Status.Rollout.Works = []v1alpha1.RolloutWork{
		{Number: 1, Run: 7, Verb: v1alpha1.WorkHoldMinReplicas, Replicas: new(int32(6)), Phase: v1alpha1.WorkSucceeded},
		{Number: 2, Run: 7, Verb: v1alpha1.WorkCreateClone, Replicas: new(int32(1)), Phase: v1alpha1.WorkSucceeded, Message: "no write was necessary"},
		{Number: 3, Run: 7, Verb: v1alpha1.WorkScale, Replicas: new(int32(2)), Phase: v1alpha1.WorkRefused, Message: "Halted: carol has halted it\x1b[31m"},
		{Number: 4, Run: 7, Verb: v1alpha1.WorkUpdateBaseline, Phase: v1alpha1.WorkPending},
	}
	r.Status.Rollout.Hold = &v1alpha1.RolloutHold{Run: 7, Number: 1, Variation: "blue", Replicas: 6, Autoscaler: &v1alpha1.HeldAutoscaler{Name: "web", UID: "h", FormerMinReplicas: new(int32(2)), MinReplicas: new(int32(6))}}
	return r
}

func TestReleasesAreShown(t *testing.T) {
	static := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", CreationTimestamp: clitest.Before(time.Minute)}}
	static.Spec.ServiceName, static.Status.Split = "cart", "a 50 / b 50"
	for name, args := range map[string][]string{
		"list": {"list"}, "list-everywhere": {"list", "-A", "-o", "wide"}, "get": {"get", "web"}, "get-without-a-rollout": {"get", "cart"}, "get-works": {"get", "copy"}, "get-not-author": {"get", "web"}, "list-name": {"list", "-o", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: objectsOf(name, static)}.Run(t, commands, "", append([]string{"release"}, args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Fatalf("%+v", got)
			}
			golden.Check(t, "testdata/"+name+".txt", got.Stdout)
		})
	}
	if got := (clitest.Cluster{}).Run(t, commands, "", "release", "list"); got.Stderr != "No releases found in shop namespace.\n" {
		t.Errorf("without releases: %+v", got)
	}
}

// objectsOf are the releases of a test. A release with works or with an author is there for its own test alone.
func objectsOf(name string, static *v1alpha1.ABRelease) []client.Object {
	switch name {
	case "get-works":
		return []client.Object{working()}
	case "get-not-author":
		r := rolling()
		r.Spec.Rollout.Approval, r.Spec.Rollout.RequestedBy = v1alpha1.ApprovalNotAuthor, "carol"
		r.Status.Rollout.Run.Approval, r.Status.Rollout.Run.Author = v1alpha1.ApprovalNotAuthor, "bob"
		r.Status.Rollout.Waiting.Message = "another user than bob or carol to approve stage 2"
		return []client.Object{r}
	}
	return []client.Object{rolling(), static}
}

func TestVerbs(t *testing.T) {
	ended := rolling()
	ended.Status.Rollout.Run.State, ended.Status.Rollout.Stage = "RolledBack", 0
	static := rolling()
	static.Spec.Rollout, static.Status.Rollout = nil, nil
	own := rolling()
	own.Status.Rollout.Run.Approval, own.Status.Rollout.Run.Author = v1alpha1.ApprovalNotAuthor, "alice"
	changed := rolling()
	changed.Spec.Rollout.Approval, changed.Spec.Rollout.RequestedBy, changed.Status.Rollout.Run.Author = v1alpha1.ApprovalNotAuthor, "alice", "bob"
	others := changed.DeepCopy()
	others.Spec.Rollout.RequestedBy = "bob"
	for name, tc := range map[string]struct {
		release *v1alpha1.ABRelease
		args    []string
		// refusal is the answer of the discovery server; it is silent if silent is set.
		refusal string
		silent  bool
		want    clitest.Answer
		sent    *v1alpha1.RolloutControl
	}{
		"an approval is about the stage that is shown": {
			args: []string{"approve", "web", "--reason", "looks good"}, want: clitest.Answer{Stdout: "shop/web approved: run 7 is Running, stage 2/3 (25 %)\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Approve", Run: 7, Stage: 2, RequestedBy: "alice", Reason: "looks good"},
		},
		"advance goes on to the stage that is named": {
			args: []string{"advance", "web", "--stage", "3"}, want: clitest.Answer{Stdout: "shop/web advanced: run 7 is Running, stage 2/3 (25 %)\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Advance", Run: 7, Stage: 3, RequestedBy: "alice"},
		},
		"promote names a variation": {
			args: []string{"promote", "web", "--variation", "green"}, want: clitest.Answer{Stdout: "shop/web promoted: run 7 is Running, stage 2/3 (25 %)\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Promote", Run: 7, Variation: "green", RequestedBy: "alice"},
		},
		"promote without a variation is a mistake": {
			args: []string{"promote", "web"},
			want: clitest.Answer{Code: 1, Stderr: "error: name the variation that gets all requests, with --variation\nSee 'kubectl plumbline release promote -h' for help and examples\n"},
		},
		"what the server refuses is told": {
			args: []string{"skip", "web"}, refusal: "Paused: nothing goes forward", want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not skipped: Paused: nothing goes forward\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Skip", Run: 7, Stage: 2, RequestedBy: "alice"},
		},
		"without an answer the wait ends": {
			args: []string{"rollback", "web", "--timeout", "10ms"}, silent: true,
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web: asked for, and not rolled back within 10ms: no discovery server has answered\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Rollback", Run: 7, RequestedBy: "alice"},
		},
		"without a wait it is asked": {
			args: []string{"rollback", "web", "--wait=false"}, silent: true, want: clitest.Answer{Stdout: "shop/web asked to be rolled back\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Rollback", Run: 7, RequestedBy: "alice"},
		},
		"a dry run asks nothing": {
			args: []string{"rollback", "web", "--dry-run"}, want: clitest.Answer{Stdout: "shop/web rolled back (dry run)\n"},
		},
		"of a run that has ended nothing is asked": {
			release: ended, args: []string{"approve", "web"}, want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not approved: run 7 has ended: RolledBack\n"},
		},
		"but to try it again": {
			release: ended, args: []string{"retry", "web"}, want: clitest.Answer{Stdout: "shop/web retried: run 7 is RolledBack\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Retry", Run: 7, RequestedBy: "alice"},
		},
		"the author approves no stage of the run": {
			release: own, args: []string{"approve", "web"},
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not approved: approval is NotAuthor, and alice is the author of run 7: another user than alice has to ask\n"},
		},
		"the author skips no stage of the run": {
			release: own, args: []string{"skip", "web"},
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not skipped: approval is NotAuthor, and alice is the author of run 7: another user than alice has to ask\n"},
		},
		"a user who has changed the release does not promote the canary": {
			release: changed, args: []string{"promote", "web", "--variation", "green"},
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not promoted: approval is NotAuthor, and alice has written the release last: another user than bob or alice has to ask\n"},
		},
		"the author ends the run": {
			release: own, args: []string{"promote", "web", "--variation", "blue"}, want: clitest.Answer{Stdout: "shop/web promoted: run 7 is Running, stage 2/3 (25 %)\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Promote", Run: 7, Variation: "blue", RequestedBy: "alice"},
		},
		"another user approves": {
			release: others, args: []string{"approve", "web"}, want: clitest.Answer{Stdout: "shop/web approved: run 7 is Running, stage 2/3 (25 %)\n"},
			sent: &v1alpha1.RolloutControl{Verb: "Approve", Run: 7, Stage: 2, RequestedBy: "alice"},
		},
		"a release without a rollout has no verbs": {
			release: static, args: []string{"start", "web"}, want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not started: it has no spec.rollout, so its percentages are fixed\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.release == nil {
				tc.release = rolling()
			}
			f := clitest.Cluster{Objects: []client.Object{tc.release.DeepCopy()}}
			var sent *v1alpha1.RolloutControl
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := api.Patch(ctx, object, patch, options...); err != nil {
					return err
				}
				r := object.(*v1alpha1.ABRelease)
				if sent = r.Spec.Rollout.Control; tc.silent {
					return nil
				}
				answered := r.DeepCopy()
				answered.Status.Rollout.Handled = &v1alpha1.HandledControl{RolloutControl: *sent, Refusal: tc.refusal}
				return api.Update(ctx, answered)
			}
			got := f.Run(t, commands, "", append([]string{"release"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPauseIsSetAndTakenBack(t *testing.T) {
	paused := rolling()
	paused.Spec.Rollout.Pause = v1alpha1.Enabled
	for name, tc := range map[string]struct {
		release *v1alpha1.ABRelease
		verb    string
		want    string
	}{
		"a run is paused":         {rolling(), "pause", "shop/web paused\n"},
		"twice changes nothing":   {paused, "pause", "shop/web is paused already\n"},
		"a paused run is resumed": {paused, "resume", "shop/web resumed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: []client.Object{tc.release.DeepCopy()}}.Run(t, commands, "", "release", tc.verb, "web")
			if got.Stdout != tc.want || got.Code != 0 {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
	if got := (clitest.Cluster{}).Run(t, commands, "", "release", "pause", "web"); got.Code != 1 || !strings.Contains(got.Stderr, "not found") {
		t.Errorf("of no release: %+v", got)
	}
}
