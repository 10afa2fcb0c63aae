// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// baselineOf is that of an authorized Deployment in sync; change alters it.
func baselineOf(change ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web", UID: "uid-b"},
		Spec:       v1alpha1.BaselineSpec{Authorized: &v1alpha1.AuthorizedState{Hash: "pl1:sha256:authorized", Number: 3, Origin: v1alpha1.OriginCreated}},
		Status:     v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{Hash: "pl1:sha256:authorized"}},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func drifted(findings ...v1alpha1.Finding) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) {
		b.Status.State, b.Status.Observed.Hash = v1alpha1.StateDrifted, "pl1:sha256:drifted"
		b.Status.Findings, b.Status.FindingsTotal = findings, int32(len(findings))
	}
}

func missing(b *v1alpha1.Baseline) {
	b.Status.State, b.Status.Observed.Hash = v1alpha1.StateMissing, specguard.HashAbsent
}

func retired(b *v1alpha1.Baseline) {
	b.Status.State, b.Status.RetirementTime = v1alpha1.StateRetired, &metav1.Time{Time: noon}
}

func state(s v1alpha1.DriftState) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) { b.Status.State = s }
}

// found is a finding by a user, of this age.
func found(path, user string, age time.Duration) v1alpha1.Finding {
	return v1alpha1.Finding{Path: path, FirstSeenTime: metav1.NewTime(noon.Add(-age)), Actor: v1alpha1.Actor{User: user}}
}

func TestPlanAccept(t *testing.T) {
	alice := func(age time.Duration) v1alpha1.Finding { return found("/spec/replicas", "alice", age) }
	bob := found("/spec/paused", "bob", time.Minute)
	imported := func(b *v1alpha1.Baseline) { b.Spec.Authorized.Origin = v1alpha1.OriginImported }
	lost := func(b *v1alpha1.Baseline) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonBodyLost})
	}
	large := func(b *v1alpha1.Baseline) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonBodyTooLarge})
	}
	cases := map[string]struct {
		baseline *v1alpha1.Baseline
		named    bool
		filter   AcceptFilter
		accepted bool
		why      AcceptRefusalReason
	}{
		"drifted":                                   {baseline: baselineOf(drifted(bob)), accepted: true},
		"missing, by the hash that says absent":     {baseline: baselineOf(missing), accepted: true},
		"never authorized and drifted":              {baseline: baselineOf(drifted(bob), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }), accepted: true},
		"in sync":                                   {baseline: baselineOf(), why: RefusedInSync},
		"in sync and named":                         {baseline: baselineOf(), named: true, why: RefusedInSync},
		"imported, in sync and named":               {baseline: baselineOf(imported), named: true, accepted: true},
		"imported and in sync, in bulk":             {baseline: baselineOf(imported), why: RefusedInSync},
		"unknown":                                   {baseline: baselineOf(state(v1alpha1.StateUnknown)), named: true, why: RefusedUnknown},
		"unknown because the body is lost, named":   {baseline: baselineOf(state(v1alpha1.StateUnknown), lost), named: true, accepted: true},
		"unknown because the body is too large":     {baseline: baselineOf(state(v1alpha1.StateUnknown), large), named: true, accepted: true},
		"unknown because the body is lost, in bulk": {baseline: baselineOf(state(v1alpha1.StateUnknown), lost), why: RefusedUnknown},
		"a state of a later version":                {baseline: baselineOf(state("Wobbly")), why: RefusedUnknown},
		"no longer guarded":                         {baseline: baselineOf(func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateNotGuarded }), why: RefusedNotGuarded},
		"retired":                                   {baseline: baselineOf(missing, retired), why: RefusedRetired},
		"drifted without an observed hash":          {baseline: baselineOf(drifted(bob), func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "" }), why: RefusedUnobserved},
		"by the user who did it all":                {baseline: baselineOf(drifted(bob)), filter: AcceptFilter{By: "bob"}, accepted: true},
		"by another user":                           {baseline: baselineOf(drifted(bob)), filter: AcceptFilter{By: "alice"}, why: RefusedUnmatched},
		"by a user among others":                    {baseline: baselineOf(drifted(alice(0), bob)), filter: AcceptFilter{By: "alice"}, why: RefusedOtherFinding},
		"by nobody known":                           {baseline: baselineOf(drifted(found("/x", "", 0))), filter: AcceptFilter{By: "alice"}, why: RefusedUnmatched},
		"just within the time":                      {baseline: baselineOf(drifted(alice(time.Hour))), filter: AcceptFilter{Since: time.Hour}, accepted: true},
		"just outside it":                           {baseline: baselineOf(drifted(alice(time.Hour + time.Second))), filter: AcceptFilter{Since: time.Hour}, why: RefusedUnmatched},
		"partly outside it":                         {baseline: baselineOf(drifted(alice(2*time.Hour), alice(0))), filter: AcceptFilter{Since: time.Hour}, why: RefusedOtherFinding},
		"the right user at the wrong time":          {baseline: baselineOf(drifted(alice(2*time.Hour), bob)), filter: AcceptFilter{Since: time.Hour, By: "alice"}, why: RefusedUnmatched},
		"more findings than are listed":             {baseline: baselineOf(drifted(bob), func(b *v1alpha1.Baseline) { b.Status.FindingsTotal = 65 }), filter: AcceptFilter{By: "bob"}, why: RefusedUnlisted},
		"more findings than listed, without filter": {baseline: baselineOf(drifted(bob), func(b *v1alpha1.Baseline) { b.Status.FindingsTotal = 65 }), accepted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			accept, refused := PlanAccept([]v1alpha1.Baseline{*tc.baseline}, tc.named, tc.filter, noon)
			if tc.accepted {
				if len(accept) != 1 || len(refused) != 0 || accept[0].Hash != tc.baseline.Status.Observed.Hash {
					t.Errorf("accepted %+v, refused %+v", accept, refused)
				}
				return
			}
			if len(accept) != 0 || len(refused) != 1 || refused[0].Reason != tc.why {
				t.Fatalf("accepted %d, refused %+v, want %q", len(accept), refused, tc.why)
			}
			if quiet := tc.why == RefusedInSync || tc.why == RefusedRetired || tc.why == RefusedNotGuarded; refused[0].NothingToDo() != quiet {
				t.Errorf("nothing to do: %t, want %t", !quiet, quiet)
			}
			if (refused[0].Finding != nil) != (tc.why == RefusedOtherFinding) {
				t.Errorf("the finding is %+v", refused[0].Finding)
			}
		})
	}
}

func TestJudgeAccept(t *testing.T) {
	const hash, notLetMessage = "pl1:sha256:drifted", "ClusterSpecGuard/platform lets only these accept: boss"
	asked := func(hash, by string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) { b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: hash, RequestedBy: by} }
	}
	now := func(hash string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = hash }
	}
	kept := func(oversized, observed string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) {
			b.Status.Oversized, b.Status.Observed.Hash = &v1alpha1.OversizedBody{Hash: oversized}, observed
		}
	}
	notLet := func(b *v1alpha1.Baseline) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionAcceptanceAllowed, Status: metav1.ConditionFalse, Message: notLetMessage,
		})
	}
	cases := map[string]struct {
		baseline            *v1alpha1.Baseline
		wasMissing, deleted bool
		want                AcceptOutcome
	}{
		"still asked for":                        {baseline: baselineOf(asked(hash, "alice")), want: AcceptOutcome{}},
		"asked for, although authorized already": {baseline: baselineOf(asked(hash, "alice"), now(hash)), want: AcceptOutcome{}},
		"taken":                                  {baseline: baselineOf(now(hash)), want: AcceptOutcome{Progress: Taken, Reason: AcceptedRevision, Revision: 3}},
		"cleared without being taken":            {baseline: baselineOf(), want: AcceptOutcome{Progress: Refused, Reason: AcceptOutdated}},
		"cleared, and never authorized":          {baseline: baselineOf(func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }), want: AcceptOutcome{Progress: Refused, Reason: AcceptOutdated}},
		"cleared, and the status is still to come": {
			baseline: baselineOf(now(hash), func(b *v1alpha1.Baseline) { b.Generation, b.Status.ObservedGeneration = 3, 2 }), want: AcceptOutcome{},
		},
		"refused by a guard":                              {baseline: baselineOf(notLet), want: AcceptOutcome{Progress: Refused, Reason: AcceptForbidden, Message: notLetMessage}},
		"refused by a guard, an object that is as it was": {baseline: baselineOf(now(hash), notLet), want: AcceptOutcome{Progress: Refused, Reason: AcceptForbidden, Message: notLetMessage}},
		"refused by a guard, a missing object":            {baseline: baselineOf(state(v1alpha1.StateMissing), notLet), wasMissing: true, want: AcceptOutcome{Progress: Refused, Reason: AcceptForbidden, Message: notLetMessage}},
		"replaced by another's request":                   {baseline: baselineOf(asked("pl1:sha256:other", "bob")), want: AcceptOutcome{Progress: Refused, Reason: AcceptSuperseded, By: "bob"}},
		"a missing object, retired":                       {baseline: baselineOf(missing, retired), wasMissing: true, want: AcceptOutcome{Progress: Taken, Reason: AcceptedRetired}},
		"a missing object, its Baseline removed":          {baseline: baselineOf(), wasMissing: true, deleted: true, want: AcceptOutcome{Progress: Taken, Reason: AcceptedRetired}},
		"a missing object, not retired yet":               {baseline: baselineOf(state(v1alpha1.StateMissing)), wasMissing: true, want: AcceptOutcome{}},
		"a missing object that came back":                 {baseline: baselineOf(state(v1alpha1.StateDrifted)), wasMissing: true, want: AcceptOutcome{Progress: Refused, Reason: AcceptOutdated}},
		"an existing object whose Baseline was removed":   {baseline: baselineOf(), deleted: true, want: AcceptOutcome{Progress: Refused, Reason: AcceptBaselineRemoved}},
		"accepted, and too large to be kept":              {baseline: baselineOf(kept(hash, hash)), want: AcceptOutcome{Progress: Taken, Reason: AcceptedTooLarge}},
		"accepted, and not told to be too large yet":      {baseline: baselineOf(kept("pl1:sha256:before", hash)), want: AcceptOutcome{}},
		"too large, and changed meanwhile":                {baseline: baselineOf(kept("pl1:sha256:before", "pl1:sha256:after")), want: AcceptOutcome{Progress: Refused, Reason: AcceptOutdated}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := JudgeAccept(tc.baseline, hash, tc.wasMissing, tc.deleted); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestOfAUsersGroupsThoseThatAGuardMayNameGoAlong(t *testing.T) {
	groups := []string{"system:authenticated", "platform", "oncall", "platform", "", strings.Repeat("x", 257), "system:serviceaccounts:ci"}
	if diff := cmp.Diff([]string{"oncall", "platform"}, NameGroups(groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAcceptPatch_CarriesPreconditionsAndClearsTheReason(t *testing.T) {
	b := baselineOf()
	b.ResourceVersion = "7"
	for reason, want := range map[string]any{"": nil, "why": "why"} {
		patch, err := bound(b, acceptPatch(v1alpha1.AcceptRequest{Hash: "h", RequestedBy: "alice", Reason: reason}))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(patch, &got); err != nil {
			t.Fatal(err)
		}
		wanted := map[string]any{
			"metadata": map[string]any{"uid": "uid-b", "resourceVersion": "7"},
			"spec":     map[string]any{"accept": map[string]any{"hash": "h", "requestedBy": "alice", "reason": want, "requestedByGroups": nil}},
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
