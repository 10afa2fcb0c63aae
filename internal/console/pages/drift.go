// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func readFleet(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Fleet{Namespace: namespace, Unread: r.unread, Namespaces: map[string]labels.Set{}}
	if in.Baselines, err = list[v1alpha1.Baseline](r, "Baseline", namespace, newBaselines); err != nil {
		return view.Page{}, err
	}
	environments := maybe[v1alpha1.Environment](r, "Environment", "", func() client.ObjectList { return &v1alpha1.EnvironmentList{} })
	for i := range environments {
		in.Environments = append(in.Environments, &environments[i])
	}
	for _, n := range maybe[corev1.Namespace](r, "Namespace", "", func() client.ObjectList { return &corev1.NamespaceList{} }) {
		in.Namespaces[n.Name] = n.Labels
	}
	in.Plans = maybe[v1alpha1.RemediationPlan](r, "RemediationPlan", namespace, newPlans)
	in.Policies = maybe[v1alpha1.RemediationPolicy](r, "RemediationPolicy", "", newPolicies)
	in.Ledgers = maybe[v1alpha1.RemediationLedger](r, "RemediationLedger", "", newLedgers)
	in.Releases = maybe[v1alpha1.ABRelease](r, "ABRelease", namespace, newReleases)
	in.Now = r.Now()
	return view.FleetOf(&in), nil
}

func readDrift(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Drift{Filter: view.DriftFilter{Namespace: namespace, Severity: r.value("severity"), Actor: r.value("actor"), State: r.value("state")}}
	if in.Baselines, err = list[v1alpha1.Baseline](r, "Baseline", namespace, newBaselines); err != nil {
		return view.Page{}, err
	}
	in.Outlook, _ = r.outlook(explanation.Question{Namespace: namespace})
	in.Now = r.Now()
	return view.DriftOf(&in), nil
}

func readObject(r *reader) (view.Page, error) {
	b, err := get(r, "Baseline", &v1alpha1.Baseline{})
	if err != nil {
		return view.Page{}, err
	}
	in := view.Object{
		Baseline: b, Unread: r.unread, Revisions: revisionsOf(r, b),
		Plans: maybe[v1alpha1.RemediationPlan](r, "RemediationPlan", b.Namespace, newPlans),
	}
	if report, err := difference.Compare(r, difference.Cluster{Reader: r.Cluster, Mapper: r.Mapper, Live: r.Live, Now: r.Now}, b); err != nil {
		r.unread["live object"] = r.answerOf(err)
	} else {
		in.Difference = &report
	}
	all := maybe[v1alpha1.EffectivenessAssessment](r, "EffectivenessAssessment", b.Namespace, newAssessments)
	in.Assessments = actions.SelectAssessments(all, b.Name)
	if actions.StandingOf(b) <= actions.StandingDrifted {
		in.Outlook, _ = r.outlook(explanation.Question{Objects: []v1alpha1.Baseline{*b}, Namespace: b.Namespace})
	}
	in.Now = r.Now()
	return view.ObjectOf(&in), nil
}

// maxRevisions is how many revisions the timeline has.
const maxRevisions = 10

// revisionsOf reads the newest revisions of an object, by name: a list would carry every body of the
// namespace.
func revisionsOf(r *reader, b *v1alpha1.Baseline) []v1alpha1.BaselineRevision {
	if b.Spec.Authorized == nil {
		return nil
	}
	var revisions []v1alpha1.BaselineRevision
	newest := b.Spec.Authorized.Number
	for number := newest; number >= 1 && number > newest-maxRevisions; number-- {
		one, err := httpapi.ReadOne(r, r.Cluster, "BaselineRevision", &v1alpha1.BaselineRevision{}, b.Namespace, specguard.RevisionName(b.Name, number))
		switch {
		case apierrors.IsNotFound(err):
			return revisions // older ones are gone
		case err != nil:
			r.unread["BaselineRevision"] = r.sentenceOf(err)
			return revisions
		case one.Spec.BaselineName != b.Name:
			r.unread["BaselineRevision"] = fmt.Sprintf("revision %s says that it is of %s", one.Name, one.Spec.BaselineName)
			return revisions
		}
		revisions = append(revisions, *one)
	}
	return revisions
}
