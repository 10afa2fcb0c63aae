// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/preview"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// readRemediation previews the remediation of an object by a policy. A caller who may not read policies can
// ask without a preview.
func readRemediation(r *reader) (view.Page, error) {
	b, err := get(r, "Baseline", &v1alpha1.Baseline{})
	if err != nil {
		return view.Page{}, err
	}
	name := r.value("policy")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return view.Page{}, wire.NewProblem(wire.BadRequest, "choose the policy that remediates the object")
	}
	in := view.Remediation{Baseline: b, PolicyName: name}
	revision, err := numberOf[int64](r, revisionInput)
	if err != nil || revision != nil && *revision < 1 {
		return view.Page{}, wire.NewProblem(wire.BadRequest, "a revision has a number from 1 on")
	}
	if revision != nil {
		in.Revision = *revision
	}
	policy, err := httpapi.ReadOne(r, r.Cluster, "RemediationPolicy", &v1alpha1.RemediationPolicy{}, "", name)
	switch {
	case err == nil:
		in.Policy = policy
	case apierrors.IsForbidden(err):
		in.Unread = r.sentenceOf(err)
	default:
		return view.Page{}, err
	}
	if in.Policy != nil && in.RefuseRevision() == "" && actions.RefuseRemediation(b) == "" {
		if err := r.preview(&in); err != nil {
			return view.Page{}, err
		}
	}
	in.Now = r.Now()
	return view.RemediationOf(&in), nil
}

// preview decides as the assessor does, and tries the writes with the rights of the caller.
func (r *reader) preview(in *view.Remediation) error {
	user, err := r.Whoami(r)
	if err != nil {
		return err
	}
	requests := actions.NewRemediationRequests(in.PolicyName, user, "", []*v1alpha1.Baseline{in.Baseline})
	if in.Revision > 0 {
		actions.ChooseRevision(requests, in.Revision)
	}
	c := preview.Cluster{Reader: r.Cluster, Mapper: r.Mapper, Targets: r.DryRuns()}
	if in.Report, err = preview.ReportRequest(r, c, in.Policy, requests[0], preview.Times{Now: r.Now(), Clock: time.Now}); err != nil {
		in.Unread = r.answerOf(err)
	}
	return nil
}
