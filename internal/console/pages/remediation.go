// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readPlans(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Plans{Filter: view.PlanFilter{Namespace: namespace, Policy: r.value("policy"), Phase: r.value("phase")}}
	if in.Plans, err = list[v1alpha1.RemediationPlan](r, "RemediationPlan", namespace, newPlans); err != nil {
		return view.Page{}, err
	}
	in.Now = r.Now()
	return view.PlansOf(&in), nil
}

func readPlan(r *reader) (view.Page, error) {
	p, err := get(r, "RemediationPlan", &v1alpha1.RemediationPlan{})
	if err != nil {
		return view.Page{}, err
	}
	return view.PlanOf(p, r.Now()), nil
}

func readAssessments(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Assessments{Namespace: namespace, Verdict: r.value("verdict")}
	if in.Assessments, err = list[v1alpha1.EffectivenessAssessment](r, "EffectivenessAssessment", namespace, newAssessments); err != nil {
		return view.Page{}, err
	}
	in.Now = r.Now()
	return view.AssessmentsOf(&in), nil
}

func readAssessment(r *reader) (view.Page, error) {
	x, err := get(r, "EffectivenessAssessment", &v1alpha1.EffectivenessAssessment{})
	if err != nil {
		return view.Page{}, err
	}
	return view.AssessmentOf(x, r.Now()), nil
}
