// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

type execution struct {
	Idempotent
	Waiting
	Body wire.ExecuteRequest
}

// execute asks a policy to put objects back, in the name of the caller. All objects are asked for, or none.
func execute(ctx context.Context, s *server, in *execution) (*written[wire.Execution], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := answeringPolicy(ctx, s, &in.Body)
	if err != nil {
		return nil, err
	}
	named, err := namedBaselines(ctx, s, in.Body.Targets)
	if err != nil {
		return nil, err
	}
	x := &executing{server: s, in: in, user: user, asked: actions.NewRemediationRequests(policy, user, in.Body.Reason, named)}
	if number := in.Body.RevisionNumber; number != nil {
		if err := checkRevision(ctx, s, named, *number); err != nil {
			return nil, err
		}
		actions.ChooseRevision(x.asked, *number)
	}
	if err := x.findMade(ctx); err != nil {
		return nil, err
	}
	if err := x.refuse(named); err != nil {
		return nil, err
	}
	if err := x.create(ctx); err != nil {
		return nil, err
	}
	status := x.await(ctx)
	out := wire.Execution{PolicyName: policy, Requests: []wire.ExecutionRequest{}}
	for _, request := range x.asked {
		out.Requests = append(out.Requests, wire.ExecutionRequestOf(request))
	}
	return tagged(status, out)
}

// answeringPolicy returns the name of the policy, which must answer the request. Of a policy that the caller may
// not read, the assessor tells what is wrong with it.
func answeringPolicy(ctx context.Context, s *server, asked *wire.ExecuteRequest) (string, error) {
	id := asked.PolicyID
	policy, err := policies.one(ctx, s.cluster, id)
	switch {
	case err != nil && isNotFound(err):
		return "", invalidAt("body.policyId", "no RemediationPolicy has this id or name")
	case apierrors.IsForbidden(err) && !uidForm.MatchString(id):
		return id, nil
	case err != nil:
		return "", err
	}
	if why := planner.Refusal(policy.Name, policy); why != "" {
		return "", &actions.RefusalError{Message: why}
	}
	if asked.RevisionNumber != nil && policy.Spec.Action != v1alpha1.ActionRollback {
		return "", invalidAt("body.revisionNumber", fmt.Sprintf("policy %s does not roll back: its action is %s", policy.Name, wire.Spell(policy.Spec.Action)))
	}
	return policy.Name, nil
}

// checkRevision demands that a revision of each Baseline is kept. The assessor tells a caller who may not read revisions.
func checkRevision(ctx context.Context, s *server, named []*v1alpha1.Baseline, number int64) error {
	for _, b := range named {
		_, err := difference.GetRevision(ctx, s.cluster, b, number)
		switch {
		case apierrors.IsNotFound(err):
			return invalidAt("body.revisionNumber", fmt.Sprintf("revision %d of %s.%s does not exist or is no longer kept", number, b.Namespace, b.Name))
		case err != nil && !apierrors.IsForbidden(err):
			return &requestError{verb: "get", kind: "BaselineRevision", namespace: b.Namespace, err: err}
		}
	}
	return nil
}

// namedBaselines reads the Baselines that a request names, in its order. Those that are named by ids are read
// with one list.
func namedBaselines(ctx context.Context, s *server, ids []string) ([]*v1alpha1.Baseline, error) {
	byID := map[string]*v1alpha1.Baseline{}
	seen := map[types.NamespacedName]bool{}
	named := make([]*v1alpha1.Baseline, 0, len(ids))
	for i, id := range ids {
		if uidForm.MatchString(id) && len(byID) == 0 {
			all, err := baselines.all(ctx, s.cluster, "")
			if err != nil {
				return nil, err
			}
			for _, b := range all {
				byID[string(b.UID)] = b
			}
		}
		b, location := byID[id], fmt.Sprintf("body.targets[%d]", i)
		if b == nil {
			var err error
			if b, err = baselines.named(ctx, s.cluster, id); err != nil && isNotFound(err) {
				return nil, invalidAt(location, "no Baseline has this id or name")
			} else if err != nil {
				return nil, err
			}
		}
		if seen[client.ObjectKeyFromObject(b)] {
			return nil, invalidAt(location, "the object is named twice")
		}
		seen[client.ObjectKeyFromObject(b)] = true
		named = append(named, b)
	}
	return named, nil
}

// executing is an execution under way.
type executing struct {
	*server
	in    *execution
	user  authenticationv1.UserInfo
	asked []*v1alpha1.RemediationRequest
	keys  []*requestKey
	// made tells which requests an earlier request with the same key has made.
	made []bool
}

// findMade finds the requests that an earlier request with the same key has made: what they asked for may have
// happened since, and is no drift any more.
func (x *executing) findMade(ctx context.Context) error {
	x.keys, x.made = make([]*requestKey, len(x.asked)), make([]bool, len(x.asked))
	for i, request := range x.asked {
		key, err := x.in.of(x.user.Username, x.in.Body, request.Namespace, strconv.Itoa(i))
		if err != nil {
			return err
		}
		if x.keys[i] = key; key == nil {
			return nil
		}
		marked := request.DeepCopy()
		key.mark(marked)
		found, err := readNamed(ctx, x.server, &requests, marked)
		if err != nil && isNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if x.made[i], err = key.made(found); err != nil {
			return err
		}
		if x.made[i] {
			x.asked[i] = found
		}
	}
	return nil
}

// refuse names each object that there is no need, or no way, to put back.
func (x *executing) refuse(named []*v1alpha1.Baseline) error {
	pending := map[types.NamespacedName]bool{}
	for i, request := range x.asked {
		for _, target := range request.Spec.Targets {
			pending[types.NamespacedName{Namespace: request.Namespace, Name: target.BaselineName}] = !x.made[i]
		}
	}
	var faults []wire.FieldError
	for i, b := range named {
		if why := actions.RefuseRemediation(b); why != "" && pending[client.ObjectKeyFromObject(b)] {
			faults = append(faults, wire.FieldError{Location: fmt.Sprintf("body.targets[%d]", i), Message: why.Words()})
		}
	}
	if len(faults) > 0 {
		return wire.NewProblem(wire.Refused, "no request was made: a target cannot be remediated", faults...)
	}
	return nil
}

// create makes the requests that are not made yet. Each of several is tried first, so that none is stored when
// the API server refuses another.
func (x *executing) create(ctx context.Context) error {
	for _, dryRun := range []bool{true, false} {
		for i, request := range x.asked {
			if x.made[i] || dryRun && len(x.asked) == 1 {
				continue
			}
			if dryRun {
				if err := actions.RequestRemediation(ctx, x.cluster, request.DeepCopy(), true); err != nil {
					return &requestError{verb: "create", kind: requests.kind, namespace: request.Namespace, err: err, locate: wire.LocateVerb}
				}
				continue
			}
			stored, err := createOnce(ctx, x.server, x.keys[i], &requests, request, wire.LocateVerb)
			if err != nil {
				return err
			}
			x.asked[i] = stored
		}
	}
	return nil
}

// await waits as long as the caller wants until the assessor has answered all requests.
func (x *executing) await(ctx context.Context) int {
	bounded, cancel := context.WithTimeout(ctx, x.in.wait)
	defer cancel()
	status := http.StatusOK
	for _, request := range x.asked {
		if actions.JudgeRemediationRequest(request, false) == actions.Taken {
			continue
		}
		if x.in.wait == 0 {
			return http.StatusAccepted
		}
		progress, answer, err := actions.AwaitRemediationRequest(bounded, x.cluster, request)
		if err != nil || progress != actions.Taken {
			status = http.StatusAccepted
			continue
		}
		request.Status = answer
	}
	return status
}
