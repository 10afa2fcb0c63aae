// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type policyCreation struct {
	Idempotent
	Body wire.Policy
}

func createPolicy(ctx context.Context, s *server, in *policyCreation) (*written[wire.Policy], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := specOf(ctx, s, &in.Body, "body")
	if err != nil {
		return nil, err
	}
	if err := actions.SignPolicy(spec, user); err != nil {
		return nil, invalidAt("body.requestedByGroups", err.Error())
	}
	key, err := in.of(user.Username, in.Body)
	if err != nil {
		return nil, err
	}
	p := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: in.Body.Name}, Spec: *spec}
	if p, err = createOnce(ctx, s, key, &policies, p, wire.LocatePolicy); err != nil {
		return nil, err
	}
	out, err := showPolicy(ctx, s, http.StatusCreated, p)
	if err == nil {
		out.Location = remediationPath + "/policies/" + p.Name
	}
	return out, err
}

// showPolicy answers with a policy, whose ETag is the version of its spec.
func showPolicy(ctx context.Context, s *server, status int, p *v1alpha1.RemediationPolicy) (*written[wire.Policy], error) {
	uids, _, err := readUids(ctx, s.cluster, false)
	if err != nil {
		return nil, err
	}
	return &written[wire.Policy]{Status: status, ETag: PolicyTag(p), Body: wire.PolicyOf(p, uids)}, nil
}

// specOf returns the spec that the policy of a caller at a location describes, with the Environment that its id
// names.
func specOf(ctx context.Context, s *server, p *wire.Policy, location string) (*v1alpha1.RemediationPolicySpec, error) {
	spec, err := p.Spec()
	if err != nil {
		return nil, invalidAt(location, err.Error())
	}
	if p.EnvironmentID == "" {
		return &spec, nil
	}
	e, err := environments.one(ctx, s.cluster, p.EnvironmentID)
	switch {
	case err != nil && isNotFound(err):
		return nil, invalidAt(location+".environmentId", "no Environment has this id or name")
	case err != nil:
		return nil, err
	case spec.EnvironmentName != "" && spec.EnvironmentName != e.Name:
		return nil, invalidAt(location+".environmentId", fmt.Sprintf("it is the id of Environment %s, and environmentName is %s", e.Name, spec.EnvironmentName))
	}
	spec.EnvironmentName = e.Name
	return &spec, nil
}

// Conditional names a policy, and the version that the caller has seen.
type Conditional struct {
	Path
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"The ETag of the policy as the caller has seen it; required."`
}

// policy reads the policy, which must be the version that the caller has seen.
func (c *Conditional) policy(ctx context.Context, s *server) (*v1alpha1.RemediationPolicy, error) {
	if c.IfMatch == "" {
		return nil, wire.NewProblem(wire.PreconditionRequired, "send the ETag of the policy as If-Match")
	}
	p, err := policies.one(ctx, s.cluster, c.ID)
	if err != nil {
		return nil, err
	}
	if !isListed(c.IfMatch, PolicyTag(p)) {
		return nil, hasChanged(p)
	}
	return p, nil
}

func hasChanged(p *v1alpha1.RemediationPolicy) error {
	return wire.NewProblem(wire.PreconditionFailed, fmt.Sprintf("the ETag of policy %s is %s now", p.Name, PolicyTag(p)))
}

type policyReplacement struct {
	Conditional
	DryRun bool `query:"dryRun" doc:"Have the API server validate the policy, and store no object."`
	Body   wire.Policy
}

func replacePolicy(ctx context.Context, s *server, in *policyReplacement) (*written[wire.Policy], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	p, err := in.policy(ctx, s)
	if err != nil {
		return nil, err
	}
	if in.Body.Name != p.Name {
		return nil, invalidAt("body.name", "the name of a policy does not change: it is "+p.Name)
	}
	spec, err := specOf(ctx, s, &in.Body, "body")
	if err != nil {
		return nil, err
	}
	if err := actions.ReplacePolicy(ctx, s.cluster, p, spec, user, in.DryRun); err != nil {
		return nil, ofPolicy("update", p, err)
	}
	return showPolicy(ctx, s, http.StatusOK, p)
}

func deletePolicy(ctx context.Context, s *server, in *Conditional) (*struct{}, error) {
	p, err := in.policy(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := actions.DeletePolicy(ctx, s.cluster, p); err != nil {
		return nil, ofPolicy("delete", p, err)
	}
	return nil, nil //nolint:nilnil // the answer has no body
}

// ofPolicy names a write that failed. A policy that was changed meanwhile is not the version that the caller
// has seen.
func ofPolicy(verb string, p *v1alpha1.RemediationPolicy, err error) error {
	switch {
	case errors.Is(err, actions.ErrPolicyChanged):
		return hasChanged(p)
	case actions.IsGroupsRefusal(err):
		return invalidAt("body.requestedByGroups", err.Error())
	}
	return &requestError{verb: verb, kind: policies.kind, err: err, locate: wire.LocatePolicy}
}

type modeRequest struct {
	Path
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"The ETag of the policy as the caller has seen it; without it the mode of any version is set."`
	Body    *wire.ActivateRequest
}

// setMode makes the handler that sets the mode of a policy in the name of the caller.
func setMode(mode v1alpha1.PolicyMode) func(context.Context, *server, *modeRequest) (*written[wire.Policy], error) {
	return func(ctx context.Context, s *server, in *modeRequest) (*written[wire.Policy], error) {
		asked := bodyOf(in.Body)
		user, err := s.whoami(ctx)
		if err != nil {
			return nil, err
		}
		p, err := policies.one(ctx, s.cluster, in.ID)
		if err != nil {
			return nil, err
		}
		if in.IfMatch != "" && !isListed(in.IfMatch, PolicyTag(p)) {
			return nil, hasChanged(p)
		}
		var groups []string
		if asked.Groups != nil {
			groups = *asked.Groups
		}
		as, err := actions.SelectPrincipal(p, mode, user, groups, asked.Groups != nil)
		if err != nil {
			return nil, err
		}
		if !actions.IsInMode(p, mode, as) {
			if err := actions.RequestMode(ctx, s.cluster, p, mode, as, asked.Reason, false); err != nil {
				return nil, &requestError{verb: "patch", kind: policies.kind, err: err, locate: wire.LocateVerb}
			}
		}
		return showPolicy(ctx, s, http.StatusOK, p)
	}
}

// bodyOf returns the body of a request, which may be absent.
func bodyOf[B any](body *B) B {
	if body == nil {
		return *new(B)
	}
	return *body
}
