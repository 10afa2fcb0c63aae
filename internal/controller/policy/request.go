// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	// requestLasts is how old a request may be when it is answered: the person who asked
	// must not be surprised by a write hours later.
	requestLasts = 10 * time.Minute
	// maxRequestMessage is the schema's bound, in bytes.
	maxRequestMessage = 512
	// maxAnswers bounds for how many requests one look plans, and maxAnswersOfNamespace for
	// how many of one namespace: to plan reads all objects of the policy, and requests
	// without end must not hold up the policy or other people.
	maxAnswers, maxAnswersOfNamespace = 10, 2
	// moreAnswers is how soon a policy is looked at again that has more requests.
	moreAnswers = settleTime
)

// policyOf maps an open request to the policy that answers it.
func policyOf(_ context.Context, o client.Object) []reconcile.Request {
	request, ok := o.(*v1alpha1.RemediationRequest)
	if !ok || !open(request) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: request.Spec.PolicyName}}}
}

// open says that a request has no answer yet.
func open(request *v1alpha1.RemediationRequest) bool {
	return request.Status.Outcome == "" && request.DeletionTimestamp == nil
}

// answerRequests answers what people ask of the policy, in the order in which they asked.
func (r *Reconciler) answerRequests(ctx context.Context, s *subject) error {
	var list v1alpha1.RemediationRequestList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the requests of policy %s: %w", s.policy.Name, err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(q v1alpha1.RemediationRequest) bool {
		return q.Spec.PolicyName != s.policy.Name || !open(&q)
	})
	slices.SortFunc(list.Items, func(a, b v1alpha1.RemediationRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var failed []error
	planned, of := 0, map[string]int{}
	for i := range list.Items {
		request := &list.Items[i]
		if why := refuses(s, request); why != "" {
			refusal := v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused, Message: why}
			failed = append(failed, writeAnswer(ctx, r.Client, request, refusal, s.now))
			continue
		}
		if planned == maxAnswers || of[request.Namespace] == maxAnswersOfNamespace {
			s.unanswered = true
			continue
		}
		planned++
		of[request.Namespace]++
		failed = append(failed, r.answerRequest(ctx, s, request))
	}
	return errors.Join(failed...)
}

func (r *Reconciler) answerRequest(ctx context.Context, s *subject, request *v1alpha1.RemediationRequest) error {
	live, err := r.livePlans(ctx, s.policy.Name)
	if err != nil {
		return err
	}
	if plan := planFor(request, live); plan != nil { // its answer was lost
		answer := planner.Answer(plan, nil)
		answer.LeftOut = leftOutOf(request, plan)
		return writeAnswer(ctx, r.Client, request, answer, s.now)
	}
	asked := &subject{policy: s.policy, request: request, now: s.now, skew: s.skew}
	if err := r.decide(ctx, asked, live); err != nil {
		return err
	}
	if err := r.createPlans(ctx, asked); err != nil {
		return err
	}
	s.created = append(s.created, asked.created...)
	var plan *v1alpha1.RemediationPlan
	if len(asked.out.Plans) > 0 { // another assessor may have made it
		plan = &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Name: asked.out.Plans[0].Name}}
	}
	return writeAnswer(ctx, r.Client, request, planner.Answer(plan, asked.out.LeftOut), s.now)
}

// refuses says why a request is refused before its targets are looked at.
func refuses(s *subject, request *v1alpha1.RemediationRequest) string {
	if why := planner.Refusal(s.policy.Name, s.policy); why != "" {
		return why
	}
	if len(s.gathered.Problems) > 0 {
		return fmt.Sprintf("policy %s makes no plans before this is put right: %s", s.policy.Name, s.gathered.Problems[0].Error())
	}
	if age := s.now.Sub(request.CreationTimestamp.Time); age > requestLasts {
		return fmt.Sprintf("the request was not answered within %s: look again, and ask again", requestLasts)
	}
	return ""
}

// planFor returns the plan that was made for a request; nil when none was.
func planFor(request *v1alpha1.RemediationRequest, plans []v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	for i := range plans {
		if of := plans[i].Spec.Plan.Request; of != nil && of.UID == string(request.UID) {
			return &plans[i]
		}
	}
	return nil
}

// leftOutOf returns what the plan of a request says of the targets that it does not have.
func leftOutOf(request *v1alpha1.RemediationRequest, plan *v1alpha1.RemediationPlan) []v1alpha1.LeftOut {
	var left []v1alpha1.LeftOut
	for _, l := range plan.Spec.Plan.LeftOut {
		if slices.ContainsFunc(request.Spec.Targets, func(t v1alpha1.RequestedTarget) bool { return t.BaselineName == l.BaselineName }) {
			left = append(left, l)
		}
	}
	return left
}

func writeAnswer(ctx context.Context, writer client.Client, request *v1alpha1.RemediationRequest, answer v1alpha1.RemediationRequestStatus, now time.Time) error {
	answered := request.DeepCopy()
	answered.Status = answer
	answered.Status.Message = diff.TruncateText(diff.Printable(answer.Message), maxRequestMessage)
	answered.Status.ObservedGeneration = request.Generation
	answered.Status.AnswerTime = &metav1.Time{Time: now}
	// Only a PUT of /status checks the uid beside the resourceVersion.
	if err := writer.Status().Update(ctx, answered, client.FieldOwner(FieldManager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("answering request %s/%s: %w", request.Namespace, request.Name, err)
	}
	return nil
}
