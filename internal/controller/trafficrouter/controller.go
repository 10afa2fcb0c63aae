// SPDX-License-Identifier: Apache-2.0

package trafficrouter

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// again is how often it is looked at what a router said.
const again = 10 * time.Second

// Reasons of the condition Ready.
const (
	reasonConfigured      = "Configured"
	reasonInvalidSelector = "InvalidSelector"
	reasonSecret          = "SecretUnreadable"
	reasonFailing         = v1alpha1.ReasonRequestsFail
)

// Traefiks serves the Traefiks of TrafficRouters.
type Traefiks interface {
	PrepareTraefik(ctx context.Context, router *v1alpha1.TrafficRouter) error
	DropTraefik(router string)
}

// Controller writes the status of TrafficRouters, and has their Traefiks served.
type Controller struct {
	Client client.Client
	// Reports says what a router said last.
	Reports func(router types.UID) connect.Report
	// Resolve reads the key that signs requests.
	Resolve func(ctx context.Context, ref notify.SecretRef) (string, error)
	Clock   clock.PassiveClock
	// Traefiks may be nil where no TrafficRouter has type Traefik.
	Traefiks Traefiks
}

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("trafficrouter").
		For(&v1alpha1.TrafficRouter{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(c)
	if err != nil {
		return fmt.Errorf("registering the controller of traffic routers: %w", err)
	}
	return nil
}

// Reconcile looks at one TrafficRouter.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	router := &v1alpha1.TrafficRouter{}
	if err := c.Client.Get(ctx, request.NamespacedName, router); err != nil {
		if apierrors.IsNotFound(err) && c.Traefiks != nil {
			c.Traefiks.DropTraefik(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // nil for one that is gone
	}
	if c.Traefiks != nil {
		if err := c.Traefiks.PrepareTraefik(ctx, router); err != nil {
			return reconcile.Result{}, fmt.Errorf("serving the Traefiks of TrafficRouter %s: %w", router.Name, err)
		}
	}
	was := router.Status.DeepCopy()
	writeStatus(router, c.Reports(router.UID), c.readSecrets(ctx, &router.Spec), c.Clock.Now())
	if !equality.Semantic.DeepEqual(was, &router.Status) {
		if err := c.Client.Status().Update(ctx, router); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("writing the status of TrafficRouter %s: %w", router.Name, err)
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// readSecrets returns why a Secret that a TrafficRouter names cannot be read.
func (c *Controller) readSecrets(ctx context.Context, spec *v1alpha1.TrafficRouterSpec) error {
	for _, ref := range connect.SecretsOf(spec) {
		if _, err := c.Resolve(ctx, notify.SecretRef{Name: ref.Name, Key: ref.Key}); err != nil {
			return err //nolint:wrapcheck // it names the Secret
		}
	}
	return nil
}

// writeStatus fills in what is known of a router. secret says why its key cannot be read.
func writeStatus(router *v1alpha1.TrafficRouter, said connect.Report, secret error, now time.Time) {
	status := &router.Status
	status.ObservedGeneration = router.Generation
	can := connect.Capabilities(&router.Spec)
	status.Capabilities, status.Knowledge = names(can), v1alpha1.AcknowledgmentState(can.Knowledge)
	status.Version = said.Version
	if said.Refusal != "" {
		status.LastRefusal = &v1alpha1.RouterRefusal{Message: said.Refusal, RefusalTime: metav1.NewTime(said.RefusedAt).Rfc3339Copy()}
	}
	set := condition.Set{Conditions: &status.Conditions, Generation: router.Generation, Now: now}
	_, invalid := metav1.LabelSelectorAsSelector(router.Spec.AllowedNamespaces)
	switch {
	case invalid != nil:
		set.Stalled(reasonInvalidSelector, "spec.allowedNamespaces: "+invalid.Error())
	case secret != nil:
		set.NotReady(reasonSecret, secret.Error())
	case said.Failed != "":
		set.NotReady(reasonFailing, said.Failed)
	default:
		set.Ready(reasonConfigured, "releases of the allowed namespaces can name the router")
	}
}

// names are those of the capabilities that a router has, in the order of the reference page.
func names(can traffic.Capabilities) []string {
	var names []string
	for _, c := range []struct {
		name traffic.Capability
		has  bool
	}{
		{traffic.CapabilitySticky, can.Sticky},
		{traffic.CapabilityAnonymousVisitors, can.AnonymousVisitors},
		{traffic.CapabilityHeaderMap, can.HeaderMap},
		{traffic.CapabilityOverride, can.Override},
		{traffic.CapabilityOutcomes, can.Outcomes},
		{traffic.CapabilityInFlight, can.InFlight},
		{traffic.CapabilityRollbackWithoutAPIServer, can.RollbackWithoutAPIServer},
	} {
		if c.has {
			names = append(names, string(c.name))
		}
	}
	return names
}
