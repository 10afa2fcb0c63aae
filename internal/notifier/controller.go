// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Register adds the controller that keeps the channels as the policies have them:
// what waits for a channel goes on with its new settings, and ends with it.
func (n *Notifier) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("notifier").
		For(&v1alpha1.RemediationPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(n)
	if err != nil {
		return fmt.Errorf("registering the notifier: %w", err)
	}
	return nil
}

// Reconcile takes over the channels of one policy.
func (n *Notifier) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policy := &v1alpha1.RemediationPolicy{}
	err := n.cached.Get(ctx, request.NamespacedName, policy)
	switch {
	case apierrors.IsNotFound(err):
		n.forget(request.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading policy %s: %w", request.Name, err)
	default:
		n.learn(policy.Name, Channels(policy))
	}
	return reconcile.Result{}, nil
}
