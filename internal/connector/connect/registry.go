// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/internal/connector/webhook"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Registry connects releases with TrafficRouters. It is safe for concurrent use.
type Registry struct {
	// Context is the time of leading.
	Context context.Context //nolint:containedctx // routers outlive the look that makes them
	// Client reads TrafficRouters, releases and namespaces from the cache.
	Client client.Reader
	// Routes reads and writes the routes of Gateway API without a cache.
	Routes client.Client
	// Sender makes the requests of webhooks.
	Sender webhook.Sender
	// Live reads releases past the cache.
	Live client.Reader
	// Resolve reads a key of a Secret.
	Resolve func(ctx context.Context, ref notify.SecretRef) (string, error)
	// Endpoints are behind the ports that Traefiks serve.
	Endpoints provider.Endpoints
	// TraefikClient asks the APIs of Traefiks, and follows no redirect.
	TraefikClient *http.Client
	Now           func() time.Time
	// Metrics count the splits of all routers. They may be nil.
	Metrics *Metrics

	traefiks traefiks

	mu     sync.Mutex
	routes map[route]connected
	said   map[types.UID]Report
}

// route is a TrafficRouter of a release.
type route struct {
	release types.NamespacedName
	name    string
}

// connected is a router, and the objects that it was made of.
type connected struct {
	router traffic.Router
	made   made
	// measured counts the splits of the router, and is the router that the release has.
	measured *measured
}

type made struct {
	release, router types.UID
	generation      int64
}

// Report is what a TrafficRouter said last.
type Report struct {
	// Failed says why the last request failed; "" if it did not.
	Failed string
	// Refusal is the last failure, and RefusedAt its time; zero if there was none.
	Refusal   string
	RefusedAt time.Time
	// Version that the router tells of itself.
	Version string
}

// Connect returns the router of a release by the name of a TrafficRouter. The error names the TrafficRouter and says
// why the release cannot have it.
func (r *Registry) Connect(ctx context.Context, release *v1alpha1.ABRelease, name string) (traffic.Router, error) {
	of := &v1alpha1.TrafficRouter{}
	switch err := r.Client.Get(ctx, types.NamespacedName{Name: name}, of); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("TrafficRouter %s does not exist", name)
	case err != nil:
		return nil, fmt.Errorf("reading TrafficRouter %s: %w", name, err)
	}
	if err := r.checkUse(ctx, release, of); err != nil {
		return nil, err
	}
	at := route{client.ObjectKeyFromObject(release), name}
	is := made{release.UID, of.UID, of.Generation}
	var router traffic.Router
	if of.Spec.Type == v1alpha1.TrafficRouterTraefik {
		var err error
		if router, err = r.connectTraefik(ctx, at.release, of); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if has, known := r.routes[at]; known && has.made == is {
		return has.measured, nil
	}
	if router == nil {
		var err error
		if router, err = r.makeRouter(release, of, r.routes[at]); err != nil {
			return nil, err
		}
	}
	if r.routes == nil {
		r.routes = map[route]connected{}
	}
	counted := newMeasured(router, identity{of.Name, string(of.Spec.Type)}, r.Metrics, r.Now)
	r.Metrics.addRouter(at, counted)
	r.routes[at] = connected{router, is, counted}
	return counted, nil
}

// checkUse returns the reason why a release cannot have a TrafficRouter.
func (r *Registry) checkUse(ctx context.Context, release *v1alpha1.ABRelease, of *v1alpha1.TrafficRouter) error {
	if err := r.permit(ctx, release.Namespace, of); err != nil {
		return err
	}
	target := release.Spec.Router(of.Name)
	if err := checkTarget(of, target); err != nil {
		return err
	}
	return r.checkClaim(ctx, release, target)
}

// permit demands that a TrafficRouter selects a namespace.
func (r *Registry) permit(ctx context.Context, name string, of *v1alpha1.TrafficRouter) error {
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.AllowedNamespaces)
	if err != nil {
		return fmt.Errorf("TrafficRouter %s: spec.allowedNamespaces: %w", of.Name, err)
	}
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !selector.Matches(labels.Set(namespace.Labels)) {
		return fmt.Errorf("TrafficRouter %s does not allow namespace %s: its allowedNamespaces do not select the namespace", of.Name, name)
	}
	return nil
}

// makeRouter returns a new router of a type, which goes on from the one before.
func (r *Registry) makeRouter(release *v1alpha1.ABRelease, of *v1alpha1.TrafficRouter, before connected) (traffic.Router, error) {
	switch of.Spec.Type {
	case v1alpha1.TrafficRouterWebhook:
		if of.Spec.Webhook == nil {
			return nil, fmt.Errorf("TrafficRouter %s has type Webhook without a block webhook", of.Name)
		}
		at, uid := route{client.ObjectKeyFromObject(release), of.Name}, of.UID
		return webhook.New(webhook.Config{
			Context: r.Context, Name: of.Name, Release: webhook.Release{Namespace: release.Namespace, Name: release.Name, UID: release.UID},
			URL: of.Spec.Webhook.URL, Key: notify.SecretRef{Name: of.Spec.Webhook.SecretRef.Name, Key: of.Spec.Webhook.SecretRef.Key},
			Capabilities: Capabilities(&of.Spec), Settle: settleOf(&of.Spec), Sender: r.Sender, Now: r.Now,
			Report: func(result webhook.Result, failed string, answer *webhook.Answer) {
				r.noteRequest(at, result)
				r.note(uid, failed, answer)
			},
		}), nil
	case v1alpha1.TrafficRouterGatewayAPI:
		state := stateOf(release, of.Name)
		if route, is := before.router.(*gatewayapi.Router); is && before.made.release == release.UID {
			state = route.State() // the status may be older
		}
		return r.makeRoute(release, of, state), nil
	case v1alpha1.TrafficRouterTraefik:
		return nil, fmt.Errorf("TrafficRouter %s has type %s, whose router has no memory of its own", of.Name, of.Spec.Type)
	default:
		return nil, fmt.Errorf("TrafficRouter %s has type %.40q, which this version does not know", of.Name, of.Spec.Type)
	}
}

func settleOf(spec *v1alpha1.TrafficRouterSpec) time.Duration {
	if spec.Settle == nil {
		return 0
	}
	return max(spec.Settle.Duration, 0)
}

// noteRequest counts a request to the program of a router.
func (r *Registry) noteRequest(at route, result webhook.Result) {
	r.mu.Lock()
	connected, known := r.routes[at]
	r.mu.Unlock()
	if known {
		connected.measured.noteRequest(result)
	}
}

// maxRefusal bounds a refusal in a status, in bytes.
const maxRefusal = 512

// note keeps the end of a request.
func (r *Registry) note(router types.UID, failed string, answer *webhook.Answer) {
	failed = diff.TruncateText(diff.Printable(failed), maxRefusal)
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.said[router]
	if is.Failed = failed; failed != "" {
		is.Refusal, is.RefusedAt = failed, r.Now()
	}
	if answer != nil {
		is.Version = answer.Version
	}
	if r.said == nil {
		r.said = map[types.UID]Report{}
	}
	r.said[router] = is
}

// ReportOf returns what a TrafficRouter said last; the zero Report if no release has asked it.
func (r *Registry) ReportOf(router types.UID) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said[router]
}

// Forget drops the routers of a release that is gone.
func (r *Registry) Forget(release types.NamespacedName) {
	r.forgetAtTraefiks(release)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.routes {
		if at.release == release {
			delete(r.routes, at)
			r.Metrics.forgetRouter(at)
		}
	}
}
