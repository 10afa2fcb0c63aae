// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// RemediationRefusalReason says why nobody can ask to put an object back.
type RemediationRefusalReason string

// The reasons; empty for an object that can be put back.
const (
	// RemediationRetired: the object is gone, and that is settled.
	RemediationRetired RemediationRefusalReason = "Retired"
	// RemediationUnguarded: no guard selects the object any more.
	RemediationUnguarded RemediationRefusalReason = "Unguarded"
	// RemediationInSync: what runs is what is authorized.
	RemediationInSync RemediationRefusalReason = "InSync"
	// RemediationUnknown: what was not read is not put back.
	RemediationUnknown RemediationRefusalReason = "Unknown"
)

// Words tells the reason, as a clause about the object that is not put back.
func (r RemediationRefusalReason) Words() string {
	switch r {
	case RemediationRetired:
		return "it is retired: there is no drift to remediate"
	case RemediationUnguarded:
		return "no guard selects it any more"
	case RemediationInSync:
		return "it is in sync: there is no drift to remediate"
	case RemediationUnknown:
		return "its state is unknown, and only observed drift is remediated"
	default:
		return string(r)
	}
}

// RefuseRemediation gives the reason why b cannot or need not be put back.
func RefuseRemediation(b *v1alpha1.Baseline) RemediationRefusalReason {
	if b.Status.RetirementTime != nil { // also of an object that was made again since
		return RemediationRetired
	}
	switch StandingOf(b) {
	case StandingInSync:
		return RemediationInSync
	case StandingUnknown:
		return RemediationUnknown
	case StandingMissing, StandingDrifted:
		return ""
	case StandingRetired:
		return RemediationRetired
	case StandingNotGuarded:
		return RemediationUnguarded
	default:
		return RemediationUnknown
	}
}

// MaxRequested is how many targets a request has at most, and the most that one operation ever writes.
const MaxRequested = 10

// NewRemediationRequests returns the requests to put Baselines back by a policy, in the name of the user: for
// each namespace, in the order of the Baselines, as many as [MaxRequested] makes necessary.
func NewRemediationRequests(policy string, user authenticationv1.UserInfo, reason string, drifted []*v1alpha1.Baseline) (requests []*v1alpha1.RemediationRequest) {
	open := map[string]*v1alpha1.RemediationRequest{}
	for _, b := range drifted {
		request := open[b.Namespace]
		if request == nil || len(request.Spec.Targets) == MaxRequested {
			request = NewRemediationRequest(b.Namespace, policy, user, reason, nil)
			requests, open[b.Namespace] = append(requests, request), request
		}
		request.Spec.Targets = append(request.Spec.Targets, v1alpha1.RequestedTarget{BaselineName: b.Name, DriftedHash: b.Status.Observed.Hash})
	}
	return requests
}

// ChooseRevision has the targets of requests roll back to the authorized state of a number.
func ChooseRevision(requests []*v1alpha1.RemediationRequest, number int64) {
	for _, request := range requests {
		for i := range request.Spec.Targets {
			target := &request.Spec.Targets[i]
			target.Revision = specguard.RevisionName(target.BaselineName, number)
		}
	}
}

// NewRemediationRequest returns the request to put targets back by a policy, in the name of
// the user. The API server names the request when it is created.
func NewRemediationRequest(namespace, policy string, user authenticationv1.UserInfo, reason string, targets []v1alpha1.RequestedTarget) *v1alpha1.RemediationRequest {
	return &v1alpha1.RemediationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "remediate-"},
		Spec: v1alpha1.RemediationRequestSpec{
			PolicyName: policy, RequestedBy: user.Username, RequestedByGroups: NameGroups(user.Groups), Reason: reason, Targets: targets,
		},
	}
}

// RequestRemediation creates a request. What is stored is in request afterwards.
func RequestRemediation(ctx context.Context, c client.Client, request *v1alpha1.RemediationRequest, dryRun bool) error {
	if dryRun {
		return c.Create(ctx, request, client.DryRunAll)
	}
	return c.Create(ctx, request)
}

// JudgeRemediationRequest judges whether the assessor has answered a request. It is refused
// where the request is gone; a request that is answered with no plan is taken.
func JudgeRemediationRequest(request *v1alpha1.RemediationRequest, deleted bool) Progress {
	switch {
	case deleted:
		return Refused
	case request.Status.Outcome != "":
		return Taken
	default:
		return Pending
	}
}

// AwaitRemediationRequest waits until the assessor has answered a request, and returns the
// answer. It is pending still when the context ends first.
func AwaitRemediationRequest(ctx context.Context, c client.WithWatch, request *v1alpha1.RemediationRequest) (progress Progress, answer v1alpha1.RemediationRequestStatus, err error) {
	err = Await(ctx, c, request, &v1alpha1.RemediationRequestList{}, func(current *v1alpha1.RemediationRequest, deleted bool) bool {
		progress, answer = JudgeRemediationRequest(current, deleted), current.Status
		return progress != Pending
	})
	return progress, answer, err
}
