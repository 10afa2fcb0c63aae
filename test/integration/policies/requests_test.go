// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// rena may ask for remediations, and has no other right.
var rena = who{"rena", []string{"remediators", "team-a"}}

func TestWhoMayAskForARemediation(t *testing.T) {
	const (
		ownName    = "spec.requestedBy must be the authenticated user: set it to "
		ownGroups  = "spec.requestedByGroups must be groups of the authenticated user, rena: remove those that are not"
		onlyAnswer = "only the assessor answers a RemediationRequest"
		onlyMeta   = "only the assessor changes owners, finalizers and labels of a RemediationRequest"
		answer     = `{"status":{"outcome":"Planned","planName":"p"}}`
	)
	type act func(*testing.T, who, *v1alpha1.RemediationRequest) error
	asks := func(change func(*v1alpha1.RemediationRequestSpec)) act {
		return func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			change(&q.Spec)
			return mustBe(t, by.user, by.groups...).Create(t.Context(), q)
		}
	}
	named := func(user string, groups ...string) act {
		return asks(func(s *v1alpha1.RemediationRequestSpec) { s.RequestedBy, s.RequestedByGroups = user, groups })
	}
	stored := func(then act) act {
		return func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			mustCreate(t, rena, q)
			return then(t, by, q)
		}
	}
	patch := func(body string) act {
		return stored(func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error { return merged(t, by, q, body) })
	}
	answers := stored(func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
		return mergedStatus(t, by, q, answer)
	})
	tests := map[string]struct {
		who     who
		act     act
		refused string
	}{
		"rena asks in her name":                      {rena, named("rena"), ""},
		"rena asks with a group of hers":             {rena, named("rena", "team-a"), ""},
		"rena asks in another's name":                {rena, named("olga"), ownName + "rena"},
		"rena asks in the name of a policy's author": {rena, named("platform"), ownName + "rena"},
		"rena asks with a group of others":           {rena, named("rena", "team-b"), ownGroups},
		"an administrator asks in rena's name":       {root, named("rena"), ownName + "root"},
		"the assessor asks for nobody":               {judge, named("rena"), `cannot create resource "remediationrequests"`},
		"olga, who steers plans, does not ask":       {olga, named("olga"), `cannot create resource "remediationrequests"`},
		"the assessor answers":                       {judge, answers, ""},
		"rena answers herself":                       {rena, answers, `cannot patch resource "remediationrequests/status"`},
		"an administrator answers":                   {root, answers, onlyAnswer},
		"the executor answers":                       {execute, answers, `cannot patch resource "remediationrequests/status"`},
		"an administrator adds a label":              {root, patch(`{"metadata":{"labels":{"a":"b"}}}`), onlyMeta},
		"an administrator annotates":                 {root, patch(`{"metadata":{"annotations":{"a":"b"}}}`), ""},
		"rena takes hers back": {rena, stored(func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			return mustBe(t, by.user, by.groups...).Delete(t.Context(), q)
		}), ""},
		"rena writes no plan": {rena, func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			return mustBe(t, by.user, by.groups...).Create(t.Context(), remediationPlan(q.Name, "rena"))
		}, `cannot create resource "remediationplans"`},
		"rena accepts no drift": {rena, func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			b := baseline(q.Name)
			mustCreate(t, judge, b)
			return merged(t, by, b, `{"spec":{"accept":{"hash":"pl1:sha256:bb","requestedBy":"rena"}}}`)
		}, `cannot patch resource "baselines"`},
		"an administrator writes a plan that claims a request": {root, func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			plan := remediationPlan(q.Name, "root")
			plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: q.Name, UID: "u"}
			return mustBe(t, by.user, by.groups...).Create(t.Context(), plan)
		}, "only the assessor makes plans that answer a RemediationRequest"},
		"the assessor makes one": {judge, func(t *testing.T, by who, q *v1alpha1.RemediationRequest) error {
			plan := remediationPlan(q.Name, "rena")
			plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: q.Name, UID: "u"}
			return mustBe(t, by.user, by.groups...).Create(t.Context(), plan)
		}, ""},
	}
	number := 0
	for name, test := range tests {
		number++
		q := remediationRequest(fmt.Sprintf("request-%d", number), "rena")
		t.Run(name, func(t *testing.T) { assertAnswer(t, test.act(t, test.who, q), test.refused) })
	}
}
