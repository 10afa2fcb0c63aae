// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// escalating has the policy tell people first.
func escalating(in *Input, age *metav1.Duration, severity v1alpha1.SeverityLevel) {
	in.Policy.Spec.Escalation = &v1alpha1.RemediationEscalation{
		InitialAction:    v1alpha1.InitialNotifyOnly,
		RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: age, MinimumSeverity: severity},
	}
}

func TestPeopleAreToldFirstAndTheDriftIsPutBackWhenItIsOlderOrWorse(t *testing.T) {
	until := epoch.Add(40 * time.Minute) // of a drift of twenty minutes
	for name, test := range map[string]struct {
		age      *metav1.Duration
		severity v1alpha1.SeverityLevel
		change   func(*Input, *Drift)
		want     Reason
		until    time.Time
	}{
		"a drift that is neither is told":                    {age: duration(time.Hour), severity: v1alpha1.SeverityCritical, want: ReasonNotifyStage, until: until},
		"a drift that is old enough is put back":             {age: duration(20 * time.Minute), severity: v1alpha1.SeverityCritical},
		"a drift that is a second too young is told":         {age: duration(20*time.Minute + time.Second), want: ReasonNotifyStage, until: epoch.Add(time.Second)},
		"a drift that is bad enough is put back":             {age: duration(time.Hour), severity: v1alpha1.SeverityHigh},
		"a severity alone waits for no time":                 {severity: v1alpha1.SeverityCritical, want: ReasonNotifyStage},
		"a severity that no release knows puts nothing back": {severity: "Dire", want: ReasonNotifyStage},
		"a drift of the future is told": {
			age: duration(time.Hour), change: func(in *Input, d *Drift) { in.Policy.Spec.MinimumDriftAge, d.FirstSeen = nil, epoch.Add(time.Minute) },
			want: ReasonNotifyStage, until: epoch.Add(61 * time.Minute),
		},
		"a drift of unknown age is told": {
			age: duration(time.Hour), change: func(in *Input, d *Drift) {
				in.Policy.Spec.MinimumDriftAge, in.Policy.Spec.MaximumDriftAge, d.FirstSeen = nil, nil, time.Time{}
			}, want: ReasonNotifyStage,
		},
		"a drift of unknown age may be too young for the policy": {
			age: duration(time.Hour), change: func(in *Input, d *Drift) { in.Policy.Spec.MaximumDriftAge, d.FirstSeen = nil, time.Time{} }, want: ReasonTooYoung,
		},
		"a drift that is too young for the policy is not told": {
			age: duration(time.Hour), change: func(_ *Input, d *Drift) { d.FirstSeen = epoch }, want: ReasonTooYoung, until: epoch.Add(15 * time.Minute),
		},
		"a drift that is left to a GitOps tool is not told": {age: duration(time.Hour), change: func(_ *Input, d *Drift) { d.GitOps = "Flux" }, want: ReasonGitOps},
		"a drift that the action does nothing about is told, as under NotifyOnly": {
			age: duration(time.Hour), change: func(in *Input, _ *Drift) { in.Policy.Spec.Action = v1alpha1.ActionScale }, want: ReasonNotifyStage, until: until,
		},
		"a drift that a person asks for is put back": {age: duration(time.Hour), change: func(in *Input, d *Drift) {
			in.InitiatedBy = "oscar"
			in.Request = &Request{Namespace: d.Namespace, Targets: []Chosen{{Baseline: d.Baseline, DriftedHash: d.DriftedHash, Standing: StandingDrifted}}}
		}},
		"a window that is closed does not keep people from hearing of it": {
			age: duration(time.Hour), change: func(in *Input, _ *Drift) { in.Opening = Opening{Next: epoch.Add(3 * time.Hour)} }, want: ReasonNotifyStage, until: until,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(drift("web"))
			escalating(in, test.age, test.severity)
			if test.change != nil {
				test.change(in, &in.Drifts[0])
			}
			out := Make(in)
			var got LeftOut
			if len(out.LeftOut) > 0 {
				got = out.LeftOut[0]
			}
			if got.Reason != test.want || !got.Until.Equal(test.until) || (len(out.Plans) == 1) != (test.want == "") {
				t.Errorf("%d plans, left out for %q until %s; want %q until %s", len(out.Plans), got.Reason, got.Until, test.want, test.until)
			}
		})
	}
}

// An age that was unknown was told as one above the maximum, where a maximum alone was set.
func TestAnUnknownAgeIsToldAsUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		minimum, maximum *metav1.Duration
		want             string
	}{
		"a maximum alone":     {maximum: duration(time.Hour), want: "its age is unknown, and may be more than 1h0m0s: a person has to decide"},
		"a minimum of zero":   {minimum: duration(0), maximum: duration(time.Hour), want: "its age is unknown, and may be more than 1h0m0s: a person has to decide"},
		"a minimum alone":     {minimum: duration(time.Minute), want: "its age is unknown, and it is acted upon at 1m0s"},
		"both":                {minimum: duration(time.Minute), maximum: duration(time.Hour), want: "its age is unknown, and it is acted upon at 1m0s"},
		"no age is asked for": {},
	} {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			d.FirstSeen = time.Time{}
			in := input(d)
			in.Policy.Spec.MinimumDriftAge, in.Policy.Spec.MaximumDriftAge = test.minimum, test.maximum
			if got := ObstacleTo(in, &d).Message; got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheWordsOfTheFirstStageStayWhatTheyAre(t *testing.T) {
	in := input(drift("web"))
	escalating(in, duration(time.Hour), v1alpha1.SeverityCritical)
	const want = "stage Notify: people are notified, and it is remediated when it is 1h0m0s old, or its severity is at least Critical"
	for range 2 { // people are told once of each message
		if got := Make(in).LeftOut[0].Message; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		in.Now = in.Now.Add(10 * time.Minute)
	}
	if !ReasonNotifyStage.Escalates() {
		t.Error("people are not told of it")
	}
}

// An escalation takes no drift away and adds none: what is told first is what would be put
// back without it, and a drift that grows older goes from the first stage to the second and
// never back.
func TestAnEscalationOnlyPutsOffWhatWouldBePutBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDrift(t, 0)
		plain := input(d)
		staged := input(d)
		escalating(staged, duration(time.Duration(rapid.IntRange(1, 2000).Draw(t, "age"))*time.Minute), rapid.SampledFrom(append(levels, "")).Draw(t, "severity"))
		was, is := ObstacleTo(plain, &d), ObstacleTo(staged, &d)
		if was.Reason != "" && was.Reason != is.Reason {
			t.Fatalf("without an escalation %q, with one %q", was.Reason, is.Reason)
		}
		if was.Reason == "" && is.Reason != "" && is.Reason != ReasonNotifyStage {
			t.Fatalf("an escalation adds %q", is.Reason)
		}
		if StageOf(staged, &d) == StageRemediate {
			staged.Now = staged.Now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "later")) * time.Minute)
			if StageOf(staged, &d) != StageRemediate {
				t.Fatal("a drift that grows older goes back to the first stage")
			}
		}
	})
}

func TestTheCommandOfARequest(t *testing.T) {
	core := drift("settings")
	core.Target = v1alpha1.BaselineTarget{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}
	web := drift("web")
	const want = "kubectl plumbline remediate deployment.apps/web configmap/settings -n shop --policy production"
	if got := RemediateCommand("production", &web, &core); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := ExecuteCommand("shop", "p-1"); !strings.HasSuffix(got, " plan execute p-1 -n shop") {
		t.Errorf("got %q", got)
	}
}
