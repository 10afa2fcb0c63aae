// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readPolicies(r *reader) (view.Page, error) {
	all, err := list[v1alpha1.RemediationPolicy](r, "RemediationPolicy", "", newPolicies)
	if err != nil {
		return view.Page{}, err
	}
	return view.PoliciesOf(all, r.Now()), nil
}

func readPolicy(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	p, err := get(r, "RemediationPolicy", &v1alpha1.RemediationPolicy{})
	if err != nil {
		return view.Page{}, err
	}
	in := view.Policy{Policy: p, Namespace: namespace}
	in.Outlook, in.Problems = r.outlook(explanation.Question{Policies: []v1alpha1.RemediationPolicy{*p}, Namespace: namespace})
	in.Now = r.Now()
	return view.PolicyOf(&in), nil
}

// readActivation reads the effect of a policy with the rights of the caller.
func readActivation(r *reader) (view.Page, error) {
	p, err := get(r, "RemediationPolicy", &v1alpha1.RemediationPolicy{})
	if err != nil {
		return view.Page{}, err
	}
	in := view.Activation{Policy: p, Version: httpapi.PolicyTag(p)}
	if in.User, err = r.Whoami(r); err != nil {
		return view.Page{}, err
	}
	in.Outlook, in.Problems = r.outlook(explanation.Question{Policies: []v1alpha1.RemediationPolicy{*p}})
	in.Now = r.Now()
	return view.ActivationOf(&in), nil
}
