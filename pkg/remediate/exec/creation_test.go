// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// toBeMade is a world whose target is gone, and is to be made again.
func toBeMade(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	delete(w.targets.objects, "web")
	w.plan.Spec.Plan.Targets[0].UID, w.plan.Spec.Plan.Targets[0].DriftedHash = "", specguard.HashAbsent
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) { p.Spec = w.plan.Spec })
	return w
}

// An executor that takes the plan over reads the time of the intent alone. So the request
// must carry the time that follows from the intent, and not that of the dry run.
func TestACreationCarriesTheTimeThatFollowsFromItsStoredIntent(t *testing.T) {
	w := toBeMade(t)
	w.clock.now = epoch.Add(300 * time.Millisecond)
	var carried []string
	w.targets.posts = func(call string, made map[string]any) error {
		metadata, _ := made["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		text, _ := annotations[repair.AnnotationNotAfter].(string)
		carried = append(carried, call+" "+text)
		w.clock.now = w.clock.now.Add(7 * time.Second) // until the intent is stored, and later
		return nil
	}
	w.finish()
	intent := w.now().Status.Steps[0].Intent
	want := []string{
		"dry run " + protocol.NotAfter(epoch).Format(time.RFC3339),
		"post " + protocol.NotAfter(epoch.Add(7*time.Second)).Format(time.RFC3339),
	}
	if diff := cmp.Diff(want, carried); diff != "" {
		t.Errorf("the requests carry (-want +got):\n%s", diff)
	}
	if intent == nil || !intent.StorageTime.Time.Equal(epoch.Add(7*time.Second)) {
		t.Errorf("the stored intent is %+v", intent)
	}
}

// The process that slept hears that its request was refused. Then it has not written, and
// the next plan makes the object.
func TestAProcessThatSleptOverItsCreationHasNotWritten(t *testing.T) {
	w := toBeMade(t)
	w.targets.posts = func(call string, _ map[string]any) error {
		if call == "dry run" {
			return nil
		}
		w.clock.now = w.clock.now.Add(time.Hour)
		return apierrors.NewForbidden(deploymentsGR, "web", errors.New("it may be stored until 10:00:44"))
	}
	w.finish()
	status := w.now().Status
	if step := status.Steps[0]; step.State != v1alpha1.StepSkipped || step.Reason != v1alpha1.ReasonDeadlineExceeded || status.Phase != v1alpha1.PlanSkipped {
		t.Errorf("the plan is %s, its step %s %s: %s", status.Phase, step.State, step.Reason, step.Message)
	}
	for _, name := range []string{ClusterLedger, "production"} {
		if entries := w.readLedgerNow(name).Status.Entries; len(entries) != 0 {
			t.Errorf("ledger %s counts %+v", name, entries)
		}
	}
	if len(w.targets.stored) != 0 {
		t.Errorf("stored are %q", w.targets.stored)
	}
}

func TestNoCreationIsTriedByAClockThatNobodyCompared(t *testing.T) {
	w := toBeMade(t)
	var calls []string
	w.targets.posts = func(call string, _ map[string]any) error {
		calls = append(calls, call)
		return nil
	}
	w.clock.skew = window.SkewUnknown
	if out := w.carry(); out.Done || out.Why != "the time of the API server is not known" || len(calls) != 0 {
		t.Errorf("it ends with %+v after %q", out, calls)
	}
	w.clock.skew = 0
	w.finish()
	if diff := cmp.Diff([]string{"dry run", "post"}, calls); diff != "" || w.now().Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("with the time the plan is %s; calls (-want +got):\n%s", w.now().Status.Phase, diff)
	}
}
