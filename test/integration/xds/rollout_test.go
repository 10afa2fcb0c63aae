// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestARolloutProvesItselfOrIsRolledBack(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c, replica := delivery(t)
	t.Run("a good revision goes through its stages, and no visitor is moved back", func(t *testing.T) {
		t.Parallel()
		s, r, stable, canary, clients := c.checkedWorld(t, replica, "10s")
		approver := s.as("ann", "approve")
		s.must(s.ask(approver, r, `{"verb":"Start","run":1,"requestedBy":"ann"}`))
		s.checksTheCohort(r, canary)
		s.waits(r, "Approval")
		s.refusesVerbs(r)
		s.must(s.ask(approver, r, `{"verb":"Approve","run":1,"stage":2,"requestedBy":"ann"}`))
		s.wait(r, patience, "the canary is the active variation", func(r *v1alpha1.ABRelease) bool {
			return r.Status.ActiveVariation == "canary" && r.Status.Split == "canary 100 / stable 0" && r.Status.Rollout.Run.State == "Completed"
		})
		if by := r.Status.Rollout.Run.Stages[1].ApprovedBy; by != "ann" {
			t.Errorf("stage 2 is approved by %q", by)
		}
		if clients.failed.Load() > 0 || clients.movedBack.Load() > 0 || canary.asked.Load() == 0 {
			t.Errorf("%d requests failed, %d visitors were moved back, and the canary was asked %d times", clients.failed.Load(), clients.movedBack.Load(), canary.asked.Load())
		}
		s.keepsHealth(r, r.Status.Rollout.Analysis.Stages...)
		s.refusesTheServer(r)
		s.returnsRequests(r, stable, clients)
	})
	t.Run("a revision that fails is rolled back, and remembered", func(t *testing.T) {
		t.Parallel()
		s, r, stable, canary, clients := c.rolloutWorld(t, replica)
		canary.fails.Store(30)
		s.must(s.ask(s.as("ann"), r, `{"verb":"Start","run":1,"requestedBy":"ann"}`))
		s.wait(r, patience, "run 1 is rolled back", func(r *v1alpha1.ABRelease) bool {
			return r.Status.Rollout != nil && r.Status.Rollout.Run != nil && r.Status.Rollout.Run.State == "RolledBack" && r.Status.Split == "stable 100 / canary 0"
		})
		if run := r.Status.Rollout.Run; run.Reason != "StageFailed" || run.Stages[0].State != "Failed" || len(r.Status.Rollout.Rejected) != 1 {
			t.Errorf("the run is %+v, and rejected are %+v", run, r.Status.Rollout.Rejected)
		}
		a := r.Status.Rollout.Analysis
		s.keepsHealth(r, v1alpha1.StageHealth{Stage: a.Stage, HealthResult: a.HealthResult})
		if a.Verdict != "Fail" || a.Errors == nil || a.Errors.RatioLow == "" {
			t.Errorf("the analysis is %+v", a)
		}
		s.wait(r, patience, "proxies have all requests at stable", func(r *v1alpha1.ABRelease) bool {
			is, _ := holds(r, v1alpha1.ConditionAcknowledged)
			return is
		})
		before, answered := canary.asked.Load(), stable.asked.Load()
		s.wait(r, patience, "the crowd goes on", func(*v1alpha1.ABRelease) bool { return stable.asked.Load() > answered+100 })
		if after := canary.asked.Load(); after > before+1 { // one may have been on its way
			t.Errorf("the canary was asked %d times after its rollback", after-before)
		}
		if clients.canaries.Load() == 0 {
			t.Error("the canary was never asked")
		}
	})
	t.Run("people pause a run, go on, go back, try again, and deploy in the middle", func(t *testing.T) {
		t.Parallel()
		s, r, _, canary, _ := c.rolloutWorld(t, replica)
		s.peopleDecide(r, canary)
	})
	t.Run("the author of a run has another user approve it", func(t *testing.T) {
		t.Parallel()
		s, r, _, _, _ := c.rolloutWorld(t, replica)
		s.anotherUserApproves(r)
	})
}

// checksTheCohort demands that the active variation serves the visitors of the first stage, and that their
// requests are counted as the canary's, until the check is over.
func (s *shop) checksTheCohort(r *v1alpha1.ABRelease, canary *application) {
	s.Helper()
	s.wait(r, patience, "proxies have the cohort check", func(r *v1alpha1.ABRelease) bool {
		is, _ := holds(r, v1alpha1.ConditionAcknowledged)
		return is && r.Status.Split == "stable 80 / canary 20" && r.Status.Effective.Variations[1].ServedBy == "stable" && r.Status.Rollout.Waiting.Reason == "CohortCheck"
	})
	if n := canary.asked.Load(); n > 0 {
		s.Errorf("the canary answered %d requests of a cohort check", n)
	}
	s.wait(r, patience, "the first stage has begun", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Stage == 1 })
	if check := r.Status.Rollout.Run.CohortCheck; check == nil || check.CompletionTime == nil || check.Ratio == "" {
		s.Errorf("the check is %+v", check)
	}
	if by := r.Status.Effective.Variations[1].ServedBy; by != "" {
		s.Errorf("the canary is served by %q", by)
	}
}

// keepsHealth demands that a run which has ended keeps the health of both variations in the stages that were
// measured.
func (s *shop) keepsHealth(r *v1alpha1.ABRelease, stages ...v1alpha1.StageHealth) {
	s.Helper()
	if len(stages) == 0 {
		s.Errorf("no stage has health: %+v", r.Status.Rollout.Analysis)
	}
	for _, stage := range stages {
		if stage.Verdict == "" || stage.Errors == nil || len(stage.Variations) != 2 || stage.Variations[1].Samples == 0 || stage.Variations[1].Cells == 0 {
			s.Errorf("stage %d has the health %+v", stage.Stage, stage.HealthResult)
		}
	}
}

// peopleDecide has a person use the verbs in the place of the judge.
func (s *shop) peopleDecide(r *v1alpha1.ABRelease, canary *application) {
	s.Helper()
	person := s.as("pat", "approve", "promote", "skip", "retry")
	ask := func(control string) {
		s.Helper()
		s.must(s.ask(person, r, control))
	}
	refused := func(control, why string) {
		s.Helper()
		ask(control)
		s.wait(r, patience, "it is refused: "+why, func(r *v1alpha1.ABRelease) bool {
			return r.Status.Rollout.Handled != nil && strings.Contains(r.Status.Rollout.Handled.Refusal, why)
		})
	}
	pause := func(pause v1alpha1.Toggle) {
		s.Helper()
		s.must(person.Patch(s.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"pause":"`+string(pause)+`"}}}`))))
	}
	inStage := func(run int64, stage int32, split string) {
		s.Helper()
		s.wait(r, patience, fmt.Sprintf("run %d is in stage %d, with %s", run, stage, split), func(r *v1alpha1.ABRelease) bool {
			in := r.Status.Rollout
			return in.Run != nil && in.Run.Number == run && in.Stage == stage && r.Status.Split == split
		})
	}
	refused(`{"verb":"Advance","run":1,"requestedBy":"pat"}`, "no stage is under way: the run is Created")
	pause(v1alpha1.Enabled)
	refused(`{"verb":"Start","run":1,"requestedBy":"pat"}`, "Paused")
	pause(v1alpha1.Disabled)
	ask(`{"verb":"Start","run":1,"requestedBy":"pat","reason":"the pause is over"}`)
	inStage(1, 1, "stable 80 / canary 20")
	pause(v1alpha1.Enabled)
	refused(`{"verb":"Advance","run":1,"requestedBy":"pat"}`, "Paused")
	pause(v1alpha1.Disabled)
	refused(`{"verb":"Approve","run":1,"stage":2,"requestedBy":"pat"}`, "it names stage 2, and stage 1 is under way")
	refused(`{"verb":"Rollback","run":2,"requestedBy":"pat"}`, "it names run 2, and this is run 1")
	ask(`{"verb":"Advance","run":1,"stage":2,"requestedBy":"pat"}`)
	inStage(1, 2, "stable 50 / canary 50")
	ask(`{"verb":"Rollback","run":1,"requestedBy":"pat"}`)
	s.waits(r, "RevisionRejected")
	ask(`{"verb":"Retry","run":1,"requestedBy":"pat"}`)
	s.waits(r, "ManualStart")
	ask(`{"verb":"Start","run":2,"requestedBy":"pat"}`)
	inStage(2, 1, "stable 80 / canary 20")

	// Another revision in the middle: the run ends, and all requests go back before the next one begins.
	d := &appsv1.Deployment{ObjectMeta: s.named("web-canary")}
	s.must(s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(d), d))
	d.Spec.Template.Spec.Containers[0].Image = "shop:3"
	s.must(s.c.admin.Update(s.Context(), d))
	s.roll(d, "2", canary)
	s.wait(r, patience, "run 3 is that of the third revision", func(r *v1alpha1.ABRelease) bool {
		run := r.Status.Rollout.Run
		return run.Number == 3 && run.To.Image == "shop:3" && r.Status.Split == "stable 100 / canary 0"
	})
	s.waits(r, "ManualStart")
	ask(`{"verb":"Start","run":3,"requestedBy":"pat"}`)
	inStage(3, 1, "stable 80 / canary 20")
	ask(`{"verb":"Promote","run":3,"variation":"canary","requestedBy":"pat"}`)
	s.wait(r, patience, "the canary is the active variation", func(r *v1alpha1.ABRelease) bool { return r.Status.Split == "canary 100 / stable 0" })
	for i, line := range r.Status.Rollout.History {
		if line.Number != int64(i+1) {
			s.Errorf("line %d of the history has number %d", i+1, line.Number)
		}
	}
}

// refusesTheServer demands that the discovery server writes the finalizer of a release, and nothing else
// beside the status.
func (s *shop) refusesTheServer(r *v1alpha1.ABRelease) {
	s.Helper()
	if !slices.Contains(r.Finalizers, v1alpha1.FinalizerReturnRequests) {
		s.Errorf("the Service selects the stable variation, and nothing holds the release: %v", r.Finalizers)
	}
	server, err := client.New(apiserver.Impersonate(s.c.server.Config, "system:serviceaccount:plumbline-system:plumbline-xds"), client.Options{Scheme: s.c.admin.Scheme()})
	s.must(err)
	for _, patch := range []string{
		`{"spec":{"rollout":{"pause":"Enabled"}}}`, `{"spec":{"stable":"canary"}}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
	} {
		if err := server.Patch(s.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			s.Errorf("the discovery server writes %s: %v", patch, err)
		}
	}
}

// returnsRequests deletes a release whose canary is active, and demands that its requests return to the
// pods that the Service selects.
func (s *shop) returnsRequests(r *v1alpha1.ABRelease, stable *application, clients *crowd) {
	s.Helper()
	answered := stable.asked.Load()
	s.must(s.c.admin.Delete(s.Context(), r))
	poll.Until(s.T, patience, "the release is gone", func() error {
		err := s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(r), r)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it waits for %+v: %w", r.Status.Rollout.Waiting, err)
	})
	canaries := clients.canaries.Load()
	poll.Until(s.T, patience, "the stable variation answers the crowd", func() error {
		if n := stable.asked.Load(); n < answered+200 {
			return fmt.Errorf("it has answered %d requests", n-answered)
		}
		return nil
	})
	if after := clients.canaries.Load(); after > canaries+1 { // one may have been on its way
		s.Errorf("the canary answered %d requests after the release was gone", after-canaries)
	}
	if n := clients.failed.Load(); n > 0 {
		s.Errorf("%d requests failed", n)
	}
}

// refusesVerbs demands that nobody decides who may not, and nobody in another's name.
func (s *shop) refusesVerbs(r *v1alpha1.ABRelease) {
	s.Helper()
	editor := s.as("eve")
	for control, user := range map[string]client.Client{
		`{"verb":"Approve","run":1,"stage":2,"requestedBy":"eve"}`:            editor,
		`{"verb":"Promote","run":1,"variation":"canary","requestedBy":"eve"}`: editor,
		`{"verb":"Skip","run":1,"requestedBy":"eve"}`:                         editor,
		`{"verb":"Retry","run":1,"requestedBy":"eve"}`:                        editor,
		`{"verb":"Rollback","run":1,"requestedBy":"ann"}`:                     editor,
		`{"verb":"Approve","run":1,"stage":2,"requestedBy":"ann"}`:            s.c.admin,
	} {
		if err := s.ask(user, r, control); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			s.Errorf("%s: %v", control, err)
		}
	}
	forged := r.DeepCopy()
	forged.Status.ActiveVariation = "canary"
	if err := s.c.admin.Status().Update(s.Context(), forged); !apierrors.IsForbidden(err) {
		s.Errorf("an administrator writes the status: %v", err)
	}
}
