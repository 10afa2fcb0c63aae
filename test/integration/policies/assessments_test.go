// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A verdict lets plans be made, so an attacker with all rights of Kubernetes writes none, and removes none.
func TestWhoMayWriteAnAssessment(t *testing.T) {
	const (
		onlyCreates = "only the assessor creates EffectivenessAssessments"
		onlyStatus  = "only the assessor writes the status of an EffectivenessAssessment"
		onlyMeta    = "only the assessor changes owners, finalizers and labels of an EffectivenessAssessment"
		withPlan    = "an EffectivenessAssessment is deleted with its plan or its release"
		noStatus    = `cannot patch resource "effectivenessassessments/status"`
		effective   = `{"status":{"phase":"Completed","reason":"Full","verdict":"Effective","score":10000}}`
	)
	type act func(*testing.T, who, *v1alpha1.EffectivenessAssessment) error
	creates := func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error {
		return mustBe(t, by.user, by.groups...).Create(t.Context(), a)
	}
	stored := func(then act) act {
		return func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error {
			mustCreate(t, judge, a)
			return then(t, by, a)
		}
	}
	patches := func(body string) act {
		return stored(func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error { return merged(t, by, a, body) })
	}
	judges := stored(func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error {
		return mergedStatus(t, by, a, effective)
	})
	deletes := stored(func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error {
		return mustBe(t, by.user, by.groups...).Delete(t.Context(), a)
	})
	reads := stored(func(t *testing.T, by who, a *v1alpha1.EffectivenessAssessment) error {
		return mustBe(t, by.user, by.groups...).Get(t.Context(), client.ObjectKeyFromObject(a), a)
	})
	owned := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`
	tests := map[string]struct {
		who     who
		act     act
		refused string
	}{
		"the assessor begins one":                                   {judge, creates, ""},
		"an administrator begins one":                               {root, creates, onlyCreates},
		"a member of system:masters begins one":                     {master, creates, onlyCreates},
		"the executor begins none":                                  {execute, creates, `cannot create resource "effectivenessassessments"`},
		"a user who only is called assessor begins none":            {judgelet, creates, onlyCreates},
		"the assessor judges":                                       {judge, judges, ""},
		"an administrator judges":                                   {root, judges, onlyStatus},
		"a member of system:masters judges":                         {master, judges, onlyStatus},
		"the executor, whose write is judged, does not judge":       {execute, judges, noStatus},
		"a tenant does not judge":                                   {alice, judges, noStatus},
		"a namesake of the executor with all rights does not judge": {namesake, judges, onlyStatus},
		"the garbage collector does not judge":                      {gc, judges, onlyStatus},
		"an administrator has the garbage collector delete one":     {root, patches(owned), onlyMeta},
		"an administrator labels one":                               {root, patches(`{"metadata":{"labels":{"a":"b"}}}`), onlyMeta},
		"an administrator annotates one":                            {root, patches(`{"metadata":{"annotations":{"a":"b"}}}`), ""},
		"an administrator deletes one":                              {root, deletes, withPlan},
		"the garbage collector deletes one with its plan":           {gc, deletes, ""},
		"the namespace controller deletes one with its namespace":   {cleaner, deletes, ""},
		"an operator of plans reads one":                            {olga, reads, ""},
	}
	number := 0
	for name, test := range tests {
		number++
		a := assessmentNamed(fmt.Sprintf("assessment-%d", number))
		t.Run(name, func(t *testing.T) { assertAnswer(t, test.act(t, test.who, a), test.refused) })
	}
}
