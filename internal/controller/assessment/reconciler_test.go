// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// end is how an assessment ended.
type end struct {
	Reason    v1alpha1.AssessmentReason
	Verdict   v1alpha1.EffectVerdict
	Score     int32 // -1 for none
	Integrity v1alpha1.SpecIntegrity
	After     time.Duration // from the write
}

func endOf(a *v1alpha1.EffectivenessAssessment) end {
	s := &a.Status
	return end{s.Reason, s.Verdict, scoreOf(s.Score), s.Integrity, s.CompletionTime.Sub(noon)}
}

func twoPods(ready ...bool) []client.Object {
	var pods []client.Object
	for i, r := range ready {
		pods = append(pods, podOfWeb(fmt.Sprintf("web-1-%d", i), r))
	}
	return pods
}

func TestHowAnAssessmentEnds(t *testing.T) {
	const full, drift = v1alpha1.AssessedFull, v1alpha1.AssessedSpecDrift
	other := func(w *world) { w.target = deployment("evil:1"); w.target.Generation = 8; w.judge() }
	tests := map[string]struct {
		spec func(*v1alpha1.EffectivenessAssessmentSpec)
		pods []client.Object
		// from is the phase in which happens is called; empty for before the first look.
		from    v1alpha1.AssessmentPhase
		happens func(*world)
		want    end
	}{
		"all pods are ready": {
			pods: twoPods(true, true), want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"one of two pods is ready": {
			pods: twoPods(true, false), want: end{full, v1alpha1.VerdictInconclusive, 5_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"defect 6: one of two pods exists": {
			pods: twoPods(true), want: end{full, v1alpha1.VerdictInconclusive, 5_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"no pod is ready": {
			pods: twoPods(false, false), want: end{full, v1alpha1.VerdictIneffective, 0, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"the step did not write": {
			spec: func(s *v1alpha1.EffectivenessAssessmentSpec) {
				s.Execution, s.WrittenTime = v1alpha1.ExecutionNone, nil
			},
			want: end{v1alpha1.AssessedNoExecution, v1alpha1.VerdictInconclusive, -1, v1alpha1.IntegrityUnknown, 0},
		},
		"defect 1: another writer changes the target while it stabilizes": {
			from: v1alpha1.AssessmentStabilizing, happens: other, want: end{drift, v1alpha1.VerdictInvalidated, 0, v1alpha1.IntegrityDrifted, 0},
		},
		"the target is deleted before the first look": {
			happens: func(w *world) { w.target = nil; w.judge() }, want: end{drift, v1alpha1.VerdictInvalidated, 0, v1alpha1.IntegrityDrifted, 0},
		},
		"the target is replaced": {
			happens: func(w *world) { w.target.UID = "new"; w.judge() }, want: end{drift, v1alpha1.VerdictInvalidated, 0, v1alpha1.IntegrityDrifted, 0},
		},
		"defect 2: the target cannot be read until the deadline": {
			pods: twoPods(true, true), from: v1alpha1.AssessmentStabilizing, happens: func(w *world) { w.readFails = errLost },
			want: end{v1alpha1.AssessedExpired, v1alpha1.VerdictInconclusive, -1, v1alpha1.IntegrityUnknown, 30 * time.Minute},
		},
		"defect 3: an autoscaler scales the target": {
			pods: twoPods(true, true, true), from: v1alpha1.AssessmentStabilizing, happens: func(w *world) {
				w.target.Spec.Replicas, w.target.Generation, w.masked = new(int32(3)), 8, true
				w.target.Status.ObservedGeneration, w.target.Status.Replicas, w.target.Status.UpdatedReplicas = 8, 3, 3
				w.target.Status.ReadyReplicas, w.target.Status.AvailableReplicas = 3, 3
				w.judge()
			},
			want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"a change that no Baseline has judged is no drift": {
			pods: twoPods(true, true), from: v1alpha1.AssessmentStabilizing, happens: func(w *world) { w.target.Spec.Replicas, w.target.Generation = new(int32(3)), 8 },
			want: end{full, v1alpha1.VerdictInconclusive, 5_000, v1alpha1.IntegrityUnknown, 30 * time.Minute},
		},
		"other defaults under the same generation are no drift": {
			pods: twoPods(true, true), from: v1alpha1.AssessmentStabilizing, happens: func(w *world) {
				w.target.Spec.Template.Spec.PreemptionPolicy = nil
				w.target.Spec.MinReadySeconds = 1
				w.judge()
			},
			want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"the answer to the write is not known": {
			spec: func(s *v1alpha1.EffectivenessAssessmentSpec) { s.PostHash, s.PostGeneration = "", 0 }, pods: twoPods(true, true),
			want: end{full, v1alpha1.VerdictInconclusive, 10_000, v1alpha1.IntegrityUnknown, 30 * time.Minute},
		},
		"defect 13: the assessor was away until after the stabilization": {
			pods: twoPods(true, true), happens: func(w *world) { w.clock.SetTime(noon.Add(9 * time.Minute)) },
			want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 9 * time.Minute},
		},
		"the assessor was away until after the deadline": {
			pods: twoPods(true, true), happens: func(w *world) { w.clock.SetTime(noon.Add(time.Hour)) },
			want: end{v1alpha1.AssessedExpired, v1alpha1.VerdictInconclusive, -1, v1alpha1.IntegrityUnchanged, time.Hour},
		},
		"a window longer than its validity": {
			spec: func(s *v1alpha1.EffectivenessAssessmentSpec) {
				s.Windows.Validity = &metav1.Duration{Duration: time.Minute}
			}, pods: twoPods(true, true),
			want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * time.Minute},
		},
		"windows of no time": {
			spec: func(s *v1alpha1.EffectivenessAssessmentSpec) {
				s.Windows = v1alpha1.AssessmentWindows{Stabilization: &metav1.Duration{}, Validity: &metav1.Duration{Duration: time.Minute}}
			},
			pods: twoPods(true, true), want: end{full, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := written()
			if tc.spec != nil {
				tc.spec(&a.Spec)
			}
			w := newWorld(t, a, tc.pods...)
			if tc.from != "" {
				w.until(tc.from)
			}
			if tc.happens != nil {
				tc.happens(w)
			}
			if diff := cmp.Diff(tc.want, endOf(w.run())); diff != "" {
				t.Errorf("the end differs (-want +got):\n%s%+v", diff, w.stored().Status)
			}
		})
	}
}

// Each assessor dies at another write, before or after it is stored, and the next one comes to the same end.
func TestAnAssessorThatDiesAtAnyWriteIsTakenOver(t *testing.T) {
	whole := newWorld(t, written(), twoPods(true, true)...)
	want := whole.run().Status
	if whole.writes < 2 {
		t.Fatalf("only %d writes, so this would prove little", whole.writes)
	}
	for dies := 1; dies <= whole.writes; dies++ {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, stored: %t", dies, stored), func(t *testing.T) {
				w := newWorld(t, written(), twoPods(true, true)...)
				w.lose = func(n int) (bool, bool) { return stored || n != dies, n == dies }
				got := w.run().Status
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
					t.Errorf("the status differs (-undisturbed +taken over):\n%s", diff)
				}
			})
		}
	}
}

// Defect 14: an assessment that has ended causes no read and no write, however often it is looked at.
func TestAnAssessmentThatHasEndedIsLeftAlone(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	w.run()
	if w.writes > 8 {
		t.Errorf("%d writes, want at most 8", w.writes)
	}
	reads, writes := w.reads, w.writes
	for range 20 {
		w.clock.SetTime(w.clock.Now().Add(30 * time.Second))
		w.target, w.readFails = nil, errLost
		if result, err := w.look(); err != nil || result.RequeueAfter != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	if w.reads != reads || w.writes != writes {
		t.Errorf("%d reads and %d writes after the end", w.reads-reads, w.writes-writes)
	}
}

// While the clocks are not compared nothing expires, and the phase stays.
func TestNothingExpiresWithoutTheTime(t *testing.T) {
	w := newWorld(t, written(), twoPods(true, true)...)
	w.until(v1alpha1.AssessmentStabilizing)
	w.unknownTime()
	w.clock.SetTime(noon.Add(24 * time.Hour))
	if result, err := w.look(); err != nil || result.RequeueAfter != unknownAgain {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := w.stored().Status; got.Phase != v1alpha1.AssessmentStabilizing || got.Reason != "" {
		t.Errorf("it is %s, %s", got.Phase, got.Reason)
	}
	w.skew = 0
	w.clock.SetTime(noon.Add(6 * time.Minute))
	if got := w.run().Status.Reason; got != v1alpha1.AssessedFull {
		t.Errorf("it ended as %s", got)
	}
}

func TestASpecThatThisVersionDoesNotKnowFails(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.EffectivenessAssessmentSpec){
		"a subject that is no plan":   func(s *v1alpha1.EffectivenessAssessmentSpec) { s.Subject.Plan = nil },
		"an execution of another day": func(s *v1alpha1.EffectivenessAssessmentSpec) { s.Execution = "Simulated" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(change))
			got := w.run().Status
			if got.Phase != v1alpha1.AssessmentFailed || got.Verdict != "" || got.Message == "" || w.reads > 0 {
				t.Errorf("it is %s, %q, %q, after %d reads", got.Phase, got.Verdict, got.Message, w.reads)
			}
		})
	}
}

func TestASkippedStepIsAssessedWithoutARead(t *testing.T) {
	w := newWorld(t, written(func(s *v1alpha1.EffectivenessAssessmentSpec) {
		s.Execution, s.WrittenTime = v1alpha1.ExecutionNone, nil
	}))
	w.run()
	if w.reads != 0 || w.writes != 1 {
		t.Errorf("%d reads and %d writes, want 0 and 1", w.reads, w.writes)
	}
}

// One look tells each condition, and none is removed.
func TestTheConditionsOfAnAssessment(t *testing.T) {
	kinds := []string{v1alpha1.ConditionReady, v1alpha1.ConditionAssessmentComplete, v1alpha1.ConditionSpecIntegrity, v1alpha1.ConditionAlertDecayDetected, v1alpha1.ConditionPostHashCaptured}
	tell := func(a *v1alpha1.EffectivenessAssessment) (told []string) {
		for _, kind := range kinds {
			c := meta.FindStatusCondition(a.Status.Conditions, kind)
			if c == nil {
				c = &metav1.Condition{}
			}
			told = append(told, fmt.Sprintf("%s %s %s", kind, c.Status, c.Reason))
		}
		return told
	}
	w := newWorld(t, written(), twoPods(true, true)...)
	w.until(v1alpha1.AssessmentStabilizing)
	want := []string{"Ready False InProgress", "AssessmentComplete False InProgress", "SpecIntegrity True SpecUnchanged", "AlertDecayDetected False NoDecay", "PostHashCaptured True Captured"}
	if diff := cmp.Diff(want, tell(w.stored())); diff != "" {
		t.Errorf("while it stabilizes (-want +got):\n%s", diff)
	}
	want[0], want[1] = "Ready True Completed", "AssessmentComplete True Full"
	if diff := cmp.Diff(want, tell(w.run())); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

// What the API server refuses for a version is decided anew, and an assessment that went has no end to tell.
func TestWritesThatAreNotStored(t *testing.T) {
	resource := v1alpha1.GroupVersion.WithResource("effectivenessassessments").GroupResource()
	tests := map[string]struct {
		answer error
		want   reconcile.Result
		fails  bool
	}{
		"another version is stored": {apierrors.NewConflict(resource, key.Name, errLost), reconcile.Result{RequeueAfter: conflictAgain}, false},
		"the assessment is gone":    {apierrors.NewNotFound(resource, key.Name), reconcile.Result{}, false},
		"no answer arrives":         {errLost, reconcile.Result{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(), twoPods(true, true)...)
			w.refuses = tc.answer
			w.clock.SetTime(noon.Add(10 * time.Minute))
			got, err := w.look()
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%+v, %v", got, err)
			}
			for _, reason := range reasons {
				for _, verdict := range verdicts {
					if told := testutil.ToFloat64(w.r.Metrics.ended.WithLabelValues(labelsOf(reason, verdict)...)); told != 0 {
						t.Errorf("%v ends were told", told)
					}
				}
			}
		})
	}
}

// What is not ready beside the target is reported, within bounds, and lowers no score.
func TestSideEffects(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = strings.Repeat("x", 300)
	}
	tests := map[string]struct {
		unready []string
		fails   error
		want    int
	}{
		"all is ready":         {},
		"one is not":           {[]string{"Deployment shop/cart, which needs web, is not ready"}, nil, 1},
		"more than are stored": {many, nil, maxSideEffects},
		"it is not known":      {nil, errLost, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, written(), twoPods(true, true)...)
			w.unready, w.unreadyFails = tc.unready, tc.fails
			got := w.run().Status
			if len(got.SideEffects) != tc.want || scoreOf(got.Score) != 10_000 {
				t.Fatalf("%d side effects, and a score of %d", len(got.SideEffects), scoreOf(got.Score))
			}
			for _, text := range got.SideEffects {
				if len(text) > maxSideEffect {
					t.Errorf("a text of %d bytes", len(text))
				}
			}
		})
	}
}
