// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// changeBaseline changes spec and status of the target's Baseline.
func (w *world) changeBaseline(how func(*v1alpha1.Baseline)) {
	w.Helper()
	b := &v1alpha1.Baseline{}
	read(w, baselineKey, b)
	how(b)
	status := b.Status
	if err := w.Client.Update(w.Context(), b); err != nil {
		w.Fatal(err)
	}
	b.Status = status
	if err := w.Client.Status().Update(w.Context(), b); err != nil {
		w.Fatal(err)
	}
}

// started is a run whose plan has one step in a state.
func (w *world) started(state v1alpha1.StepState) *run {
	w.Helper()
	r := w.open()
	r.plan.Status.Steps = []v1alpha1.PlanStep{{State: state}}
	if state == v1alpha1.StepIntent {
		r.plan.Status.Steps[0].Intent = &v1alpha1.StepIntentRecord{
			UID: "uid-web", ResourceVersion: "41", PreHash: r.target(0).DriftedHash,
		}
		r.plan.Status.Steps[0].Intent.StorageTime.Time = epoch
	}
	return r
}

// applied stamps the target as applied, and notes the stamp that the assessor has seen.
func applied(w *world, live, seen string) {
	w.targets.metadata("web")["annotations"] = map[string]any{v1alpha1.AnnotationApplied: live}
	w.changeBaseline(func(b *v1alpha1.Baseline) { b.Status.Observed.Applied = seen })
}

func TestWhatIsReadOfATarget(t *testing.T) {
	unknown := protocol.Target{Read: protocol.Unknown}
	// as is what is read of the drifted Deployment, changed.
	as := func(change func(*protocol.Target)) func(w *world) protocol.Target {
		return func(w *world) protocol.Target {
			is := protocol.Target{
				Read: protocol.Yes, UID: "uid-web", ResourceVersion: "41", Generation: 7,
				Hash: w.plan.Spec.Plan.Targets[0].DriftedHash, Ready: protocol.Yes,
			}
			change(&is)
			return is
		}
	}
	exactly := func(is protocol.Target) func(*world) protocol.Target {
		return func(*world) protocol.Target { return is }
	}
	unwanted := func(why string) func(*world) protocol.Target {
		return as(func(is *protocol.Target) { is.Unwanted = why })
	}
	plain := as(func(*protocol.Target) {})
	rollback := func(last *v1alpha1.ReadyRevision) func(*world) {
		return func(w *world) {
			w.plan.Spec.Plan.Targets[0].Action = v1alpha1.ActionRollback
			w.changeBaseline(func(b *v1alpha1.Baseline) { b.Status.LastReady = last })
		}
	}
	basket := (*world).basket
	gone := func(w *world) { delete(w.targets.objects, "web") }
	tests := map[string]struct {
		world func(*world)
		want  func(*world) protocol.Target
	}{
		"it is as the plan says": {func(*world) {}, plain},
		"the assessor saw another state last": {
			func(w *world) {
				w.changeBaseline(func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "pl1:other" })
			},
			as(func(is *protocol.Target) { is.Unassessed = true }),
		},
		"it is not ready": {func(w *world) { w.targets.ill = true }, as(func(is *protocol.Target) {
			is.Ready, is.NotReady = protocol.No, "0 of 7 replicas are available"
		})},
		"its health is unclear": {basket, nil},
		"it cannot be read":     {func(w *world) { w.targets.fails = always(errNetwork) }, exactly(unknown)},
		"its path is not served": {func(w *world) {
			w.targets.fails = always(apierrors.NewGenericServerResponse(404, "get", deploymentsGR, "", "", 0, true))
		}, exactly(unknown)},
		"it has no uid": {func(w *world) { delete(w.targets.metadata("web"), "uid") }, exactly(unknown)},
		"it is gone":    {gone, exactly(protocol.Target{Read: protocol.No})},
		"it is being deleted": {func(w *world) { w.targets.metadata("web")["deletionTimestamp"] = "2026-03-02T10:00:00Z" }, as(func(is *protocol.Target) {
			is.Ending, is.Ready, is.NotReady = true, protocol.No, "it is being deleted"
		})},
		"its namespace is": {func(w *world) { w.guards.terminating = true }, as(func(is *protocol.Target) { is.Ending = true })},
		"writers fight over it": {func(w *world) {
			w.changeBaseline(func(b *v1alpha1.Baseline) { b.Status.Contention = &v1alpha1.Contention{} })
		}, as(func(is *protocol.Target) { is.Contended = true })},
		"the guards are not read": {func(w *world) { w.guards.err = errNetwork }, exactly(unknown)},
		"the Baseline is not":     {func(w *world) { w.failing("get Baseline", errNetwork) }, exactly(unknown)},
		"the Baseline is gone": {
			func(w *world) { w.remove(w.newBaseline()) },
			unwanted("its Baseline is gone"),
		},
		"the Baseline of another object": {
			func(w *world) { w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Target.Name = "db" }) },
			unwanted("its Baseline is that of another object"),
		},
		"a person accepted what is there": {
			func(w *world) {
				w.changeBaseline(func(b *v1alpha1.Baseline) {
					b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: w.plan.Spec.Plan.Targets[0].DriftedHash, RequestedBy: "alice"}
				})
			}, unwanted("alice has accepted the observed state"),
		},
		"a person accepted another state, which was answered": {
			func(w *world) {
				w.changeBaseline(func(b *v1alpha1.Baseline) {
					b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "pl1:other", RequestedBy: "alice"}
					b.Status.ObservedGeneration = b.Generation
				})
			}, as(func(*protocol.Target) {}),
		},
		"a person accepted another state, which the assessor has not looked at": {
			func(w *world) {
				w.changeBaseline(func(b *v1alpha1.Baseline) {
					b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "pl1:other", RequestedBy: "alice"}
					b.Generation, b.Status.ObservedGeneration = 2, 1
				})
			}, unwanted("alice has accepted the observed state"),
		},
		"an apply of the live state, not judged yet": {
			func(w *world) { applied(w, "40 manager=ci", "") }, unwanted("an apply of the live state is not judged yet"),
		},
		"a second apply of the live state": {
			func(w *world) { applied(w, "40 manager=ci", "30 manager=ci") }, unwanted("an apply of the live state is not judged yet"),
		},
		"an apply that the assessor has judged":        {func(w *world) { applied(w, "40 manager=ci", "40 manager=ci") }, plain},
		"an apply before another write of content":     {func(w *world) { applied(w, "", "40 manager=ci") }, plain},
		"an annotation that is too long to be a stamp": {func(w *world) { applied(w, strings.Repeat("4", 1025), "") }, plain},
		"a guard that is suspended":                    {func(w *world) { w.guards.held = "a guard is suspended" }, unwanted("a guard is suspended")},
		"a state that is authorized":                   {func(w *world) { w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }) }, unwanted("it has no authorized state any more")},
		"a state that is authorized, beside a writer's mask": {func(w *world) {
			w.changeBaseline(func(b *v1alpha1.Baseline) {
				b.Spec.Authorized, b.Status.Masks = nil, []v1alpha1.Mask{{Path: "/spec/paused"}}
			})
		}, unwanted("it has no authorized state any more")},
		"another state that is authorized now": {
			func(w *world) { w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = "pl1:other" }) },
			unwanted("another state was authorized since the plan was made"),
		},
		"a rollback to what was ready last": {
			rollback(&v1alpha1.ReadyRevision{Hash: "pl1:desired", Revision: "web-2"}),
			unwanted("another authorized state was ready since the plan was made"),
		},
		"a rollback that a person chose": {func(w *world) {
			rollback(nil)(w)
			w.plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"}
		}, plain},
		"a rollback without what was ready": {rollback(nil), unwanted("another authorized state was ready since the plan was made")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			r := w.started(v1alpha1.StepReserved)
			r.plan.Spec = w.plan.Spec
			got := r.read(t.Context(), 0)
			if test.want == nil { // the health of it is all that counts
				if got.Ready != protocol.Unknown || got.Read != protocol.Yes {
					t.Errorf("got %+v", got)
				}
				return
			}
			if diff := cmp.Diff(test.want(w), got); diff != "" {
				t.Errorf("the target (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a rollback to the state that the plan names", func(t *testing.T) {
		w := newWorld(t)
		rollback(&v1alpha1.ReadyRevision{Hash: w.plan.Spec.Plan.Targets[0].RevisionHash, Revision: "web-4"})(w)
		w.changeBaseline(func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = "pl1:newer" })
		r := w.started(v1alpha1.StepReserved)
		r.plan.Spec = w.plan.Spec
		if got := r.read(t.Context(), 0); got.Unwanted != "" {
			t.Errorf("it is unwanted: %s", got.Unwanted)
		}
	})
	t.Run("no guard selects it any more", func(t *testing.T) {
		w := newWorld(t)
		w.guards.rules = specguard.Rules{}
		if got := w.started(v1alpha1.StepReserved).read(t.Context(), 0); got.Read == protocol.Yes && got.Unwanted != "no active guard selects it any more" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a restart says which step did it", func(t *testing.T) {
		w := newWorld(t)
		r := w.started(v1alpha1.StepReserved)
		spec, _ := w.targets.objects["web"]["spec"].(map[string]any)
		template, _ := spec["template"].(map[string]any)
		template["metadata"] = map[string]any{"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "plan-uid-0"}}
		if got := r.read(t.Context(), 0); got.RestartedFor != "" {
			t.Errorf("a step that restarts nothing reads %q", got.RestartedFor)
		}
		r.target(0).Action = v1alpha1.ActionRestart
		if got := r.read(t.Context(), 0); got.RestartedFor != "plan-uid-0" {
			t.Errorf("a step that restarts reads %q", got.RestartedFor)
		}
	})
}

func always(err error) func(string) error { return func(string) error { return err } }

func on(call string, err error) func(string) error {
	return func(of string) error {
		if of == call {
			return err
		}
		return nil
	}
}

func TestWhatAReadingFindsOutdatesWhatWasTriedBefore(t *testing.T) {
	w := newWorld(t)
	r := w.started(v1alpha1.StepReserved)
	r.read(t.Context(), 0)
	r.load(t.Context(), 0)
	if got := r.try(t.Context(), 0); got.Result != protocol.Stored {
		t.Fatalf("the dry run: %+v", got)
	}
	delete(w.targets.objects, "web")
	r.read(t.Context(), 0)
	if got := r.write(t.Context(), 0); got.Result != protocol.Refused || len(w.targets.stored) > 0 {
		t.Errorf("without a dry run it writes: %+v, %v", got, w.targets.stored)
	}
}

func TestOnlyTheBodyThatThePlanNamesIsLoaded(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want protocol.Answer
	}{
		"the authorized body":      {authorized, protocol.Yes},
		"a body that was forged":   {strings.Replace(authorized, "shop:1", "evil:1", 1), protocol.No},
		"a damaged body":           {"damaged", protocol.No},
		"a body that is gone":      {"", protocol.No},
		"a body without an answer": {"lost", protocol.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bodies["web-4"] = test.body
			if test.body == "" {
				delete(w.bodies, "web-4")
			}
			r := w.started(v1alpha1.StepReserved)
			r.read(t.Context(), 0)
			if got := r.load(t.Context(), 0); got != test.want {
				t.Errorf("got %s, want %s", answerText(got), answerText(test.want))
			}
		})
	}
}

// What an expected writer, such as an autoscaler, moved stays: the masks of the
// Baseline say what that is.
func TestWhatAnExpectedWriterMovedIsNoDriftForTheExecutor(t *testing.T) {
	tests := map[string]struct {
		action     v1alpha1.RemediationAction
		authorized string // the revision that is authorized now
		bodies     map[string]string
		want       protocol.Answer
	}{
		"the plan's own body":                    {v1alpha1.ActionReconcile, "web-4", nil, protocol.Yes},
		"another body that is authorized":        {v1alpha1.ActionReconcile, "web-5", map[string]string{"web-5": authorized}, protocol.Yes},
		"a rollback, with both bodies":           {v1alpha1.ActionRollback, "web-5", map[string]string{"web-5": strings.Replace(authorized, `"replicas":3`, `"replicas":5`, 1)}, protocol.Yes},
		"an authorized body that cannot be read": {v1alpha1.ActionReconcile, "web-5", map[string]string{"web-5": "lost"}, protocol.Unknown},
		"a rollback whose body cannot be read":   {v1alpha1.ActionRollback, "web-5", map[string]string{"web-5": authorized, "web-4": "lost"}, protocol.Unknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.plan.Spec.Plan.Targets[0].Action = test.action
			w.changeBaseline(func(b *v1alpha1.Baseline) {
				b.Spec.Authorized.Revision = test.authorized
				b.Status.Masks = []v1alpha1.Mask{{Path: "/spec/replicas"}}
			})
			maps.Copy(w.bodies, test.bodies)
			w.targets.objects["web"] = w.targets.parse(strings.Replace(w.targets.body("web"), "evil:1", "shop:1", 1))
			r := w.started(v1alpha1.StepReserved)
			r.plan.Spec = w.plan.Spec
			got := r.read(t.Context(), 0)
			if got.Read != test.want {
				t.Fatalf("got %+v", got)
			}
			if got.Read == protocol.Yes && got.Hash != r.target(0).DesiredHash {
				t.Errorf("seven replicas of an autoscaler are drift: %s", got.Hash)
			}
			if again := r.read(t.Context(), 0); again.Read != got.Read || again.Hash != got.Hash {
				t.Errorf("read again it is %+v, before %+v", again, got)
			}
		})
	}
}

func TestAWriteIsStoredOnlyWithAUsableAnswer(t *testing.T) {
	tests := map[string]struct {
		raw  string
		err  error
		want protocol.WriteResult
	}{
		"an object":            {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"uid-web","resourceVersion":"42"},"spec":{}}`, nil, protocol.Stored},
		"no object":            {`oops`, nil, protocol.Lost},
		"an object of no uid":  {`{"metadata":{}}`, nil, protocol.Lost},
		"an object of no sort": {`{"metadata":{"uid":"uid-web"},"spec":[`, nil, protocol.Lost},
		"an error":             {``, errors.New("broken pipe"), protocol.Lost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.started(v1alpha1.StepIntent)
			r.read(t.Context(), 0)
			got := r.answer(0, func() ([]byte, error) { return []byte(test.raw), test.err })
			if got.Result != test.want || (got.Message == "") != (test.want == protocol.Stored) {
				t.Errorf("got %+v, want %s", got, test.want)
			}
		})
	}
}

func TestAnObjectThatIsGoneIsMadeAgain(t *testing.T) {
	w := toBeMade(t)
	w.changeBaseline(func(b *v1alpha1.Baseline) {
		b.Status.Observed.Metadata = &v1alpha1.ObservedMetadata{Labels: map[string]string{"team": "shop"}}
	})
	w.finish()
	status := w.now().Status
	if diff := cmp.Diff([]string{"post web"}, w.targets.stored); diff != "" || status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s, %+v; writes (-want +got):\n%s", status.Phase, status.Steps, diff)
	}
	labels, _ := w.targets.metadata("web")["labels"].(map[string]any)
	if labels["team"] != "shop" || labels["plumbline.dev/plan"] != planUID {
		t.Errorf("its labels are %v", labels)
	}
	w.verify(3)
}
