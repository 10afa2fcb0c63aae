// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// checkedSubject has a Baseline that was last checked an hour before now.
func checkedSubject(period time.Duration) *subject {
	now := epoch.Add(time.Hour)
	s := &subject{key: webKey, now: now, baseline: &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{
		State: v1alpha1.StateInSync, LastCheckTime: &metav1.Time{Time: epoch},
		Observed: v1alpha1.ObservedState{UID: "u", Hash: "h", FullHash: "f"},
	}}}
	s.settings.Period = resync.Answer[time.Duration]{Value: period, From: "SpecGuard/web"}
	return s
}

func TestOnlyAChangeOrACheckMovesTheTimeOfTheLastOne(t *testing.T) {
	const period = 3 * time.Hour
	checkedAt := epoch.Add(59 * time.Minute)
	tests := map[string]struct {
		period time.Duration
		stored time.Time // nextCheck before
		check  *checks.Answer
		change func(next *v1alpha1.BaselineStatus)
		last   time.Time
		// next check: at least a period after last; or, if given, exactly.
		next  time.Time
		never bool
		asked string
	}{
		"a look that finds nothing":            {period: period, last: epoch},
		"a look, with a due time that stands":  {period: period, stored: epoch.Add(190 * time.Minute), last: epoch, next: epoch.Add(190 * time.Minute)},
		"a change":                             {period: period, change: func(s *v1alpha1.BaselineStatus) { s.Observed.FullHash = "g" }, last: epoch.Add(time.Hour)},
		"another object of the same content":   {period: period, change: func(s *v1alpha1.BaselineStatus) { s.Observed.UID = "v" }, last: epoch.Add(time.Hour)},
		"it is gone":                           {period: period, change: func(s *v1alpha1.BaselineStatus) { s.Observed.Hash = specguard.HashAbsent }, last: epoch.Add(time.Hour)},
		"other ignore rules":                   {period: period, change: func(s *v1alpha1.BaselineStatus) { s.Observed.Hash = "i" }, last: epoch},
		"a severity that grew":                 {period: period, change: func(s *v1alpha1.BaselineStatus) { s.Severity = &v1alpha1.Severity{} }, last: epoch},
		"a check":                              {period: period, stored: epoch.Add(59 * time.Minute), check: &checks.Answer{At: checkedAt}, last: checkedAt},
		"a check that was asked for":           {check: &checks.Answer{At: checkedAt, Request: "now"}, last: checkedAt, never: true, asked: "now"},
		"a check that found another object":    {period: period, check: &checks.Answer{At: checkedAt, Differs: true}, change: func(s *v1alpha1.BaselineStatus) { s.Observed.FullHash = "g" }, last: epoch.Add(time.Hour)},
		"checks are off":                       {stored: epoch.Add(190 * time.Minute), last: epoch, never: true},
		"retired":                              {period: period, change: func(s *v1alpha1.BaselineStatus) { s.RetirementTime = &metav1.Time{Time: epoch} }, last: epoch, never: true},
		"a shorter period counts from then on": {period: 10 * time.Minute, stored: epoch.Add(190 * time.Minute), last: epoch},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := checkedSubject(tc.period)
			s.check = tc.check
			if !tc.stored.IsZero() {
				s.baseline.Status.NextCheckTime = &metav1.Time{Time: tc.stored}
			}
			next := s.baseline.Status.DeepCopy()
			next.LastCheckTime = &metav1.Time{Time: s.now} // as the rules have it: every look
			if tc.change != nil {
				tc.change(next)
			}
			(&Reconciler{}).setChecks(s, next)
			if !next.LastCheckTime.Time.Equal(tc.last) {
				t.Errorf("last checked at %s, want %s", next.LastCheckTime, tc.last)
			}
			if next.CheckRequested != tc.asked {
				t.Errorf("answered is %q, want %q", next.CheckRequested, tc.asked)
			}
			got := timeOf(next.NextCheckTime)
			switch {
			case tc.never:
				if !got.IsZero() {
					t.Errorf("next is %s, want never", got)
				}
			case !tc.next.IsZero():
				if !got.Equal(tc.next) {
					t.Errorf("next is %s, want %s", got, tc.next)
				}
			case got.Before(tc.last.Add(tc.period)) || got.After(tc.last.Add(tc.period*6/5)):
				t.Errorf("next is %s, want %s to a fifth more after %s", got, tc.period, tc.last)
			}
		})
	}
}

// Before a restart and after it, whatever the moment, the due time is the same.
func TestARestartMovesNoDueTime(t *testing.T) {
	s := checkedSubject(3 * time.Hour)
	first := s.baseline.Status.DeepCopy()
	(&Reconciler{}).setChecks(s, first)
	if err := asStored(first); err != nil {
		t.Fatal(err)
	}
	restarted := checkedSubject(3 * time.Hour)
	restarted.baseline.Status, restarted.now = *first, epoch.Add(17*time.Hour)
	again := first.DeepCopy()
	(&Reconciler{}).setChecks(restarted, again)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the status (-before +after):\n%s", diff)
	}
}

func TestARequestIsAValueThatWasNotThereBefore(t *testing.T) {
	long := strings.Repeat("é", 300)
	for name, tc := range map[string]struct{ asked, answered, want string }{
		"nobody asks":                {},
		"somebody asks":              {asked: "a", want: "a"},
		"somebody asked":             {asked: "a", answered: "a"},
		"somebody asks again":        {asked: "b", answered: "a", want: "b"},
		"the annotation was removed": {answered: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{CheckRequested: tc.answered}}
			if tc.asked != "" {
				b.Annotations = map[string]string{v1alpha1.AnnotationCheckRequested: tc.asked}
			}
			if got := request(b); got != tc.want {
				t.Errorf("asked is %q, want %q", got, tc.want)
			}
		})
	}
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationCheckRequested: long}}}
	b.Status.CheckRequested = request(b)
	if n := len(b.Status.CheckRequested); n > maxRequest || n == 0 || request(b) != "" {
		t.Errorf("a request of %d bytes is remembered with %d, and asked is then %q", len(long), n, request(b))
	}
}

func TestWhatAnObjectAskedForBeforeItWasGone(t *testing.T) {
	says := func(period string) map[string]string {
		return map[string]string{v1alpha1.AnnotationResyncPeriod: period}
	}
	with := func(annotations map[string]string) *kube.Object {
		return &kube.Object{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	checked := &metav1.Time{Time: epoch}
	tests := map[string]struct {
		view   kube.View
		asked  map[string]string
		status *v1alpha1.BaselineStatus
		want   map[string]string
	}{
		"it is there":                         {view: kube.View{Current: with(says("6h"))}, asked: says("1h"), want: says("6h")},
		"it was there a moment ago":           {view: kube.View{Pending: []kube.Transition{{Prev: with(says("6h"))}}}, asked: says("1h"), want: says("6h")},
		"it asks for nothing":                 {view: kube.View{Current: with(nil)}, status: &v1alpha1.BaselineStatus{LastCheckTime: checked}, want: map[string]string{}},
		"it was there since this began":       {asked: says("6h"), want: says("6h")},
		"nothing is known, and it was on":     {status: &v1alpha1.BaselineStatus{LastCheckTime: checked, NextCheckTime: checked}},
		"nothing is known, and it was off":    {status: &v1alpha1.BaselineStatus{LastCheckTime: checked}, want: says("0s")},
		"nothing is known, and it never was":  {status: &v1alpha1.BaselineStatus{}},
		"nobody has ever seen it":             {},
		"it asked for nothing, and it is off": {asked: map[string]string{}, status: &v1alpha1.BaselineStatus{LastCheckTime: checked}, want: map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &subject{view: tc.view, asked: tc.asked}
			if tc.status != nil {
				s.baseline = &v1alpha1.Baseline{Status: *tc.status}
			}
			if diff := cmp.Diff(tc.want, s.annotations()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// What becomes of an object that was deleted outside is told in its Baseline.
func TestWhetherAMissingObjectMayBeCreatedAgainIsTold(t *testing.T) {
	missing := func(origin v1alpha1.Origin, by v1alpha1.Actor) *v1alpha1.Baseline {
		return &v1alpha1.Baseline{
			Spec: v1alpha1.BaselineSpec{Authorized: &v1alpha1.AuthorizedState{Origin: origin}},
			Status: v1alpha1.BaselineStatus{State: v1alpha1.StateMissing, Findings: []v1alpha1.Finding{{
				Class: v1alpha1.ClassObjectMissing, Actor: by,
			}}},
		}
	}
	alice := v1alpha1.Actor{User: "alice", Class: v1alpha1.ActorUntrusted}
	tests := map[string]struct {
		baseline *v1alpha1.Baseline
		change   func(*subject)
		want     string // status, reason and a part of the message
	}{
		"created and resync on":    {baseline: missing(v1alpha1.OriginCreated, alice), want: "True DeletedOutOfBand may create it again"},
		"created and resync off":   {baseline: missing(v1alpha1.OriginCreated, alice), change: func(s *subject) { s.settings.Period.Value = 0 }, want: "False ResyncOff off (SpecGuard/web)"},
		"imported":                 {baseline: missing(v1alpha1.OriginImported, alice), want: "False Imported older than its guard"},
		"unmanaged":                {baseline: missing(v1alpha1.OriginCreated, alice), change: func(s *subject) { s.settings.Management.Value = v1alpha1.Unmanaged }, want: "False Unmanaged GuardDefaults/prod leaves it"},
		"by nobody who is known":   {baseline: missing(v1alpha1.OriginCreated, v1alpha1.Actor{}), want: "False Unattributed no record"},
		"its namespace goes away":  {baseline: missing(v1alpha1.OriginCreated, alice), change: func(s *subject) { s.terminating = true }, want: "False NamespaceTerminating being deleted"},
		"an object that is there":  {baseline: &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted}}, want: "False NotMissing not missing"},
		"removed by who may":       {baseline: &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateRetired, RetirementTime: &metav1.Time{Time: epoch}}}, want: "False Retired may"},
		"that nobody could read":   {baseline: &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateUnknown}}, want: "False NotMissing not missing"},
		"with a condition of then": {baseline: withRecreatable(&v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateInSync}}), want: "False NotMissing not missing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := checkedSubject(time.Hour)
			s.rules = guardedRules(t)
			s.settings.Management = resync.Answer[v1alpha1.ManagementPolicy]{Value: v1alpha1.Managed, From: "GuardDefaults/prod"}
			if tc.change != nil {
				tc.change(s)
			}
			(&Reconciler{}).setRecreatable(s, tc.baseline)
			got := meta.FindStatusCondition(tc.baseline.Status.Conditions, ConditionRecreatable)
			status, rest, _ := strings.Cut(tc.want, " ")
			reason, part, _ := strings.Cut(rest, " ")
			if got == nil || string(got.Status) != status || got.Reason != reason || !strings.Contains(got.Message, part) {
				t.Errorf("the condition is %+v, want %s", got, tc.want)
			}
		})
	}
}

func withRecreatable(b *v1alpha1.Baseline) *v1alpha1.Baseline {
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: ConditionRecreatable, Status: metav1.ConditionTrue, Reason: "DeletedOutOfBand"})
	return b
}

// guardedRules are those of one guard of Deployments.
func guardedRules(t *testing.T) specguard.Rules {
	t.Helper()
	g, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "web"}, v1alpha1.GuardSpec{
		Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
	}, nil, epoch)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	set := specguard.NewGuardSet([]*specguard.Guard{g}, nil, specguard.System{})
	return set.Rules((&subject{key: webKey, now: epoch}).query(guards.Namespace{}))
}
