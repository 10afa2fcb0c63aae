// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// Requests refuses requests of policies that do not exist, which no policy answers, and
// removes requests that were answered long ago.
type Requests struct {
	Client client.Client
	// Live reads past the cache: a policy may be newer than it.
	Live  client.Reader
	Clock clock.PassiveClock
	// Keep is how long an answered request stays.
	Keep time.Duration
}

// Register adds the controller to a manager.
func (r *Requests) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("remediation-requests").For(&v1alpha1.RemediationRequest{}).Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of requests: %w", err)
	}
	return nil
}

// Reconcile looks at one request.
func (r *Requests) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	asked := &v1alpha1.RemediationRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, asked); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case asked.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case asked.Status.Outcome == "":
		return r.refuseOrphan(ctx, asked)
	}
	return r.removeOld(ctx, asked)
}

// refuseOrphan answers a request whose policy does not exist.
func (r *Requests) refuseOrphan(ctx context.Context, asked *v1alpha1.RemediationRequest) (reconcile.Result, error) {
	err := r.Live.Get(ctx, types.NamespacedName{Name: asked.Spec.PolicyName}, &v1alpha1.RemediationPolicy{})
	switch {
	case err == nil: // which answers; it may be deleted before that
		return reconcile.Result{RequeueAfter: requestLasts}, nil
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("reading policy %s: %w", asked.Spec.PolicyName, err)
	}
	answer := v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused, Message: planner.Refusal(asked.Spec.PolicyName, nil)}
	return reconcile.Result{}, writeAnswer(ctx, r.Client, asked, answer, r.Clock.Now())
}

func (r *Requests) removeOld(ctx context.Context, asked *v1alpha1.RemediationRequest) (reconcile.Result, error) {
	if asked.Status.AnswerTime == nil {
		return reconcile.Result{}, nil
	}
	if left := asked.Status.AnswerTime.Add(r.Keep).Sub(r.Clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	uid, version := asked.UID, asked.ResourceVersion
	err := r.Client.Delete(ctx, asked, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing request %s/%s: %w", asked.Namespace, asked.Name, err)
	}
	return reconcile.Result{}, nil
}
