// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// fakeMesh has one answer.
type fakeMesh struct {
	obstacle string
	err      error
}

func (m fakeMesh) Obstacle(context.Context, client.Reader, string, *v1alpha1.PlanTarget) (string, error) {
	return m.obstacle, m.err
}

// quarantining has the plan put web into quarantine, and the assessor see its drift.
func quarantining(w *world, mesh Mesh, change func(*v1alpha1.Baseline)) *run {
	w.Helper()
	target := &w.plan.Spec.Plan.Targets[0]
	target.Action, target.DesiredHash = v1alpha1.ActionQuarantine, target.DriftedHash
	w.changeBaseline(func(b *v1alpha1.Baseline) {
		b.Status.State, b.Status.Observed.UID, b.Status.PlanName = v1alpha1.StateDrifted, "uid-web", w.plan.Name
		if change != nil {
			change(b)
		}
	})
	w.Mesh = mesh
	r := w.started(v1alpha1.StepReserved)
	r.plan.Spec.Plan.Targets[0] = *target
	return r
}

func TestTheTrialOfAQuarantine(t *testing.T) {
	for name, tc := range map[string]struct {
		mesh   Mesh
		change func(*v1alpha1.Baseline)
		want   protocol.WriteResult
		says   string
	}{
		"shows that it can be stored":              {mesh: fakeMesh{}, want: protocol.Stored},
		"is refused without a mesh":                {want: protocol.Refused, says: "NoMesh: "},
		"is refused by what proxies serve":         {mesh: fakeMesh{obstacle: "NotServed: nothing"}, want: protocol.Refused, says: "NotServed: nothing"},
		"waits when that cannot be read":           {mesh: fakeMesh{err: errNetwork}, want: protocol.Lost, says: errNetwork.Error()},
		"waits for the assessor to see the drift":  {mesh: fakeMesh{}, change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateInSync }, want: protocol.Lost, says: "the assessor has not looked"},
		"waits for the assessor to see this drift": {mesh: fakeMesh{}, change: func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "pl1:other" }, want: protocol.Lost, says: "the assessor has not looked"},
		"waits while another plan has the claim":   {mesh: fakeMesh{}, change: func(b *v1alpha1.Baseline) { b.Status.PlanName = "other" }, want: protocol.Lost, says: "plan other holds"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := quarantining(w, tc.mesh, tc.change)
			if target := r.read(t.Context(), 0); target.Read != protocol.Yes {
				t.Fatalf("read is %+v", target)
			}
			if answer := r.load(t.Context(), 0); answer != protocol.Yes {
				t.Fatalf("the revision is %v", answer)
			}
			got := r.try(t.Context(), 0)
			if got.Result != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %+v", got)
			}
			b := &v1alpha1.Baseline{}
			read(w, baselineKey, b)
			if b.Status.Quarantine != nil {
				t.Errorf("a trial has stored %+v", b.Status.Quarantine)
			}
		})
	}
}

func TestAQuarantineIsBoundToTheVersionOfTheBaseline(t *testing.T) {
	w := newWorld(t)
	r := quarantining(w, fakeMesh{}, nil)
	before := r.read(t.Context(), 0)
	if tried := r.try(t.Context(), 0); tried.Result != protocol.Stored {
		t.Fatalf("tried is %+v", tried)
	}
	if fenced := r.fence(t.Context(), 0); fenced.Result != protocol.Stored || fenced.ResourceVersion == before.ResourceVersion {
		t.Fatalf("the fence is %+v, and the version was %s", fenced, before.ResourceVersion)
	}
	if late := r.write(t.Context(), 0); late.Result != protocol.Conflicted {
		t.Errorf("a write after the fence is %+v", late)
	}
	r.read(t.Context(), 0)
	r.try(t.Context(), 0)
	if written := r.write(t.Context(), 0); written.Result != protocol.Stored {
		t.Fatalf("the write is %+v", written)
	}
	after := r.read(t.Context(), 0)
	if after.Quarantine.Token != protocol.Token(r.plan, 0) || !after.Quarantine.Held || after.Unwanted != "" || after.Ready != protocol.Yes {
		t.Errorf("read is %+v", after)
	}
	b := &v1alpha1.Baseline{}
	read(w, baselineKey, b)
	if q := b.Status.Quarantine; q == nil || q.UID != "uid-web" || q.By != "RemediationPlan/production-1" || b.Status.Fences != 1 {
		t.Errorf("stored is %+v after %d fences", q, b.Status.Fences)
	}
}

func TestAnObjectInQuarantineIsLeftToThePlanThatPutItThere(t *testing.T) {
	w := newWorld(t)
	r := quarantining(w, fakeMesh{}, func(b *v1alpha1.Baseline) {
		b.Status.Quarantine = &v1alpha1.Quarantine{Token: "other-0", By: "RemediationPlan/other"}
	})
	if got := r.read(t.Context(), 0); got.Unwanted != "it is in quarantine already, by RemediationPlan/other" {
		t.Errorf("read is %+v", got)
	}
}
