// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxNamed bounds how many namespaces a condition names.
const maxNamed = 10

// all is the one request of this controller: which namespace belongs to whom is
// a question about all Environments together.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Controller keeps the status of Environments and answers which one a namespace
// belongs to.
type Controller struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Changed is told after the assignment changed, so that severities are
	// computed anew; may be nil.
	Changed func()

	current atomic.Pointer[environment.Assignment]
}

// Of returns the Environment that a namespace belongs to, as last computed; nil
// when there is none.
func (c *Controller) Of(namespace string) *v1alpha1.Environment {
	if a := c.current.Load(); a != nil {
		return a.Of(namespace)
	}
	return nil
}

// Find returns the Environment of a namespace as [Controller.Of] does; known is false until Environments
// were read.
func (c *Controller) Find(namespace string) (environment *v1alpha1.Environment, known bool) {
	return c.Of(namespace), c.current.Load() != nil
}

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{all}
	})
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("environment").
		Watches(&v1alpha1.Environment{}, toAll).
		WatchesMetadata(namespaces, toAll).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the environment controller: %w", err)
	}
	return nil
}

// Reconcile computes the assignment and writes every status that it changes.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	environments, namespaces, err := c.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	assignment := environment.Assign(environments, namespaces)
	c.publish(&assignment)
	return reconcile.Result{}, c.write(ctx, environments, assignment)
}

func (c *Controller) read(ctx context.Context) ([]*v1alpha1.Environment, map[string]labels.Set, error) {
	var environments v1alpha1.EnvironmentList
	if err := c.Client.List(ctx, &environments); err != nil {
		return nil, nil, fmt.Errorf("listing environments: %w", err)
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, nil, fmt.Errorf("listing namespaces: %w", err)
	}
	namespaces := make(map[string]labels.Set, len(list.Items))
	for i := range list.Items {
		namespaces[list.Items[i].Name] = list.Items[i].Labels
	}
	out := make([]*v1alpha1.Environment, 0, len(environments.Items))
	for i := range environments.Items {
		out = append(out, &environments.Items[i])
	}
	return out, namespaces, nil
}

// publish makes the assignment visible. Severities depend on whole Environments,
// not only on who belongs where, so any difference is told.
func (c *Controller) publish(a *environment.Assignment) {
	before := c.current.Swap(a)
	if c.Changed != nil && (before == nil || !before.Equals(*a)) {
		c.Changed()
	}
}

func (c *Controller) write(ctx context.Context, environments []*v1alpha1.Environment, a environment.Assignment) error {
	var failed []error
	for _, e := range environments {
		next := e.DeepCopy()
		status(next, a.Share[e.Name], condition.Set{
			Conditions: &next.Status.Conditions, Generation: e.Generation, Now: c.Clock.Now(),
		})
		if equality.Semantic.DeepEqual(e.Status, next.Status) {
			continue
		}
		if err := c.Client.Status().Update(ctx, next); err != nil {
			failed = append(failed, fmt.Errorf("writing the status of environment %s: %w", e.Name, err))
		}
	}
	return errors.Join(failed...)
}

// status fills in what an Environment covers.
func status(e *v1alpha1.Environment, share environment.Share, conditions condition.Set) {
	e.Status.ObservedGeneration = e.Generation
	e.Status.Namespaces = int32(min(len(share.Namespaces), 1<<30))
	if share.Invalid != nil {
		conditions.Stalled("InvalidSelector", share.Invalid.Error())
		conditions.Put(v1alpha1.ConditionDegraded, metav1.ConditionUnknown, "InvalidSelector", "the selector selects no namespaces while it is invalid")
		return
	}
	conditions.Ready("Active", fmt.Sprintf("%d namespaces belong to this environment", len(share.Namespaces)))
	var known []condition.Degradation
	if len(share.Overlaps) > 0 {
		known = append(known, condition.Degradation{Reason: v1alpha1.ReasonNamespacesOverlap, Message: overlapMessage(e.Name, share.Overlaps)})
	}
	conditions.Degraded("no other Environment selects these namespaces", known...)
}

func overlapMessage(name string, overlaps []environment.Overlap) string {
	named := make([]string, 0, maxNamed)
	for _, o := range overlaps[:min(len(overlaps), maxNamed)] {
		owner := "here"
		if o.Owner != name {
			owner = "to " + o.Owner
		}
		named = append(named, fmt.Sprintf("%s belongs %s", o.Namespace, owner))
	}
	slices.Sort(named)
	message := "other environments pick the same namespaces: " + strings.Join(named, ", ")
	if more := len(overlaps) - maxNamed; more > 0 {
		message += fmt.Sprintf(", and %d more", more)
	}
	return message
}
