// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// observe carries a plan on, one second after the other, for as long as its only
// step is Applied; health says what is read of the target in each second after the
// write. It returns the second in which the step ended.
func observe(t *testing.T, e *executor, health func(second int) Target) int {
	t.Helper()
	until[WriteTarget](t, e)
	e.carry(fine)
	written := e.w.now
	for range 10_000 {
		second := int(e.w.now.Sub(written) / time.Second)
		e.decide()
		if ended(&e.plan.Status.Steps[0]) {
			return second
		}
		if _, reads := e.pending.(ReadTarget); reads {
			is := health(second)
			t := e.w.reading(0, fine)
			t.Read, t.Ready, t.NotReady = is.Read, is.Ready, is.NotReady
			e.learn(0, func(f *StepFacts) { f.Target = t })
			e.pending = nil
			continue
		}
		e.carry(fine)
		if e.waits != "" {
			e.w.now = e.w.now.Add(time.Second)
		}
	}
	t.Fatalf("the step never ends, it waits: %s", e.waits)
	return 0
}

// The step of a plan counts as Verified only after health.stabilization, whatever
// the target does in between; and not after health.timeout.
func TestAStepIsVerifiedWhenItsTargetWasHealthyForLongEnough(t *testing.T) {
	healthy, ill := Target{Read: Yes, Ready: Yes}, Target{Read: Yes, Ready: No}
	unread, unclear := Target{Read: Unknown}, Target{Read: Yes, Ready: Unknown}
	from := func(second int, before, after Target) func(int) Target {
		return func(now int) Target {
			if now < second {
				return before
			}
			return after
		}
	}
	only := func(first, last int, then, else_ Target) func(int) Target {
		return func(now int) Target {
			if first <= now && now <= last {
				return then
			}
			return else_
		}
	}
	tests := map[string]struct {
		stabilization time.Duration
		health        func(second int) Target
		want          string
	}{
		"healthy at once, it is verified after the stabilization":                  {10 * time.Second, only(0, 0, healthy, healthy), "Verified  in second 10"},
		"a longer stabilization takes longer":                                      {45 * time.Second, only(0, 0, healthy, healthy), "Verified  in second 45"},
		"without a stabilization it is verified when it is healthy":                {0, from(7, ill, healthy), "Verified  in second 7"},
		"the stabilization begins when it is healthy":                              {10 * time.Second, from(7, ill, healthy), "Verified  in second 17"},
		"the stabilization begins anew when it was ill in between":                 {10 * time.Second, only(5, 6, ill, healthy), "Verified  in second 17"},
		"it begins anew when it was ill in the last second of it":                  {10 * time.Second, only(9, 9, ill, healthy), "Verified  in second 20"},
		"a moment in which it cannot be read neither ends nor restarts it":         {10 * time.Second, only(5, 6, unread, healthy), "Verified  in second 10"},
		"nor a moment in which its health is unclear":                              {10 * time.Second, only(5, 6, unclear, healthy), "Verified  in second 10"},
		"it is not verified while it cannot be read":                               {10 * time.Second, only(5, 29, unread, healthy), "Verified  in second 30"},
		"unreadable for a minute at first, it is verified all the same":            {10 * time.Second, from(60, unread, healthy), "Verified  in second 70"},
		"of unclear health for a minute at first, it is verified all the same":     {10 * time.Second, from(60, unclear, healthy), "Verified  in second 70"},
		"never healthy, it fails at the time-out":                                  {10 * time.Second, only(0, 0, ill, ill), "Failed Unhealthy in second 120"},
		"never readable, it fails at the time-out":                                 {10 * time.Second, only(0, 0, unread, unread), "Failed Unhealthy in second 120"},
		"of unclear health for ever, it fails at the time-out":                     {10 * time.Second, only(0, 0, unclear, unclear), "Failed Unhealthy in second 120"},
		"ill again and again, it fails at the time-out":                            {10 * time.Second, func(s int) Target { return only(0, 4, ill, healthy)(s % 10) }, "Failed Unhealthy in second 120"},
		"healthy in the second of the time-out, it is given its stabilization too": {10 * time.Second, from(120, ill, healthy), "Verified  in second 130"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
			w.health = &Health{Stabilization: test.stabilization, Timeout: 2 * time.Minute}
			e := &executor{w: w, holder: "a"}
			second := observe(t, e, test.health)
			step := &w.plan.Status.Steps[0]
			if got := fmt.Sprintf("%s %s in second %d", step.State, step.Reason, second); got != test.want {
				t.Errorf("got %s, want %s; what happened: %q", got, test.want, step.Logs)
			}
		})
	}
}

func TestAStepThatIsNotHealthyInTimeSaysWhy(t *testing.T) {
	tests := map[string]struct {
		target Target
		want   string
	}{
		"its target is not ready":                 {Target{Read: Yes, Ready: No, NotReady: "0 of 3 replicas are ready"}, "it was not ready 2m0s after its remediation: 0 of 3 replicas are ready"},
		"it is not known whether it is ready":     {Target{Read: Yes, Ready: Unknown, NotReady: "it does not say"}, "within 2m0s it was unknown whether it is healthy: it does not say"},
		"its target could not be read to the end": {Target{Read: Unknown}, "within 2m0s it was unknown whether it is healthy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
			w.health = &Health{Timeout: 2 * time.Minute}
			observe(t, &executor{w: w, holder: "a"}, func(int) Target { return test.target })
			if got := w.plan.Status.Steps[0].Message; got != test.want {
				t.Errorf("the step says %q", got)
			}
		})
	}
}

// D3 of the review of remediation: a step was verified after the built-in time, because
// its policy could not be read.
func TestWithoutItsPolicyNoStepThatHasWrittenEnds(t *testing.T) {
	now := epoch.Add(time.Hour)
	tests := map[string]Target{
		"its target is healthy":          {Read: Yes, Ready: Yes},
		"its target is not ready":        {Read: Yes, Ready: No},
		"its target cannot be read":      {Read: Unknown},
		"its target is gone":             {Read: No},
		"its target was changed by then": {Read: Yes, Ready: Yes, UID: "uid", Hash: "other"},
	}
	for name, target := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepApplied)
			s.Health, s.Now = nil, now
			s.Plan.Status.Steps[0].Result = &v1alpha1.StepResult{RecordTime: metav1.NewTime(epoch)}
			s.Plan.Status.Steps[0].HealthyTime = &metav1.Time{Time: epoch}
			s.Facts.Steps = map[int32]StepFacts{0: {Target: &target}}
			if e, ok := Next(s).(Wait); !ok || !e.Until.Equal(now.Add(again)) {
				t.Errorf("it goes on with %+v", Next(s))
			}
		})
	}
}
