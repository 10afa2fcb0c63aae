// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/secrets"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
)

const (
	// parting is how long the end of the process waits for what is under way.
	parting = 5 * time.Second
	// maxChannels of all policies, Environments and guards together; package notify takes no more.
	maxChannels = 512
	// maxTenantChannels are those of all SpecGuards of a namespace, so that no tenant takes the
	// places of others.
	maxTenantChannels = 16
)

// Settings come from the process's flags and tests; the zero value tells public
// addresses over TLS, and remembers what was told as long as it lives.
type Settings struct {
	Egress deliver.Egress
	// Roots are the authorities that are trusted; nil: the system's.
	Roots *x509.CertPool
	// Retry, completed from notify.DefaultRetry.
	Retry notify.Retry
	// Seen survives a restart; nil: nothing does.
	Seen deliver.Seen
}

// Config is what a Notifier needs from its process. All fields but Settings are
// needed.
type Config struct {
	Settings
	// Namespace is Plumbline's own, where the Secrets are.
	Namespace string
	// Live reads Secrets, Cached policies.
	Live, Cached client.Reader
	Registry     prometheus.Registerer
	Log          logr.Logger
}

// Notifier tells people about plans, rollouts and drift. It is safe for concurrent use; end it with
// Close.
type Notifier struct {
	cached    client.Reader
	deliverer *deliver.Notifier
	metrics   *metrics
	log       logr.Logger

	mu sync.Mutex
	// bySource are the channels of each policy, Environment and guard.
	bySource map[string][]notify.Channel
}

// New makes one that knows no channels yet.
func New(c Config) (*Notifier, error) {
	m, err := newMetrics(c.Registry)
	if err != nil {
		return nil, err
	}
	return &Notifier{
		cached: c.Cached, metrics: m, log: c.Log, bySource: map[string][]notify.Channel{},
		deliverer: deliver.New(deliver.Options{
			Secrets: secrets.Reader{Live: c.Live, Namespace: c.Namespace}.Resolve, Seen: c.Seen, Recorder: m,
			Log: slog.New(logr.ToSlogHandler(c.Log)), Egress: c.Egress, Roots: c.Roots, Retry: c.Retry,
		}),
	}, nil
}

// Notify tells an event by the channels of its policy. It does not wait.
func (n *Notifier) Notify(e notify.Event) {
	policy := &v1alpha1.RemediationPolicy{}
	// A read of a cache; without the policy nobody knows whom to tell.
	if err := n.cached.Get(context.Background(), types.NamespacedName{Name: e.Policy}, policy); err != nil {
		n.untold(e, err)
		return
	}
	n.Tell(policy, e)
}

// Tell tells an event by the channels of a policy that [notify.Route] names, if the
// policy asks for such events. It does not wait.
func (n *Notifier) Tell(policy *v1alpha1.RemediationPolicy, e notify.Event) {
	if !Wants(&policy.Spec.Notifications, &e) {
		return
	}
	// The policy may have come here before the news of its channels did.
	channels := n.learn(policy.Name, Channels(policy))
	if err := n.deliverer.Notify(e, notify.Route(e, channels)...); err != nil {
		n.untold(e, err)
	}
}

// untold says of an event that it reached no queue.
func (n *Notifier) untold(e notify.Event, err error) {
	e = e.Bounded()
	n.log.Error(err, "notification.untold", "event", e.ID(), "type", string(e.Type), "policy", e.Policy,
		"plan", e.Plan.Namespace+"/"+e.Plan.Name, "correlation_id", e.CorrelationID)
}

// learn takes over the channels of a policy or an Environment and returns those that can be told.
func (n *Notifier) learn(source string, channels []notify.Channel) []notify.Channel {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known, ok := n.bySource[source]; !ok || !reflect.DeepEqual(known, channels) {
		n.bySource[source] = channels
		n.configure(source)
	}
	return slices.DeleteFunc(slices.Clone(channels), func(c notify.Channel) bool { return fault(c, 0) != nil })
}

// forget drops the channels of a policy or an Environment that is gone, and what waits for them.
func (n *Notifier) forget(source string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.bySource[source]; ok {
		delete(n.bySource, source)
		n.configure(source)
	}
}

// configure makes the channels of all policies, Environments and guards those of the deliverer. One that is
// invalid is left out, for it must not silence the others; it is in the log when
// its policy has changed.
func (n *Notifier) configure(changed string) {
	var valid []notify.Channel
	invalid, ofTenant := 0, map[string]int{}
	for _, source := range slices.SortedFunc(maps.Keys(n.bySource), compareSources) {
		tenant := tenantOf(source)
		for _, c := range n.bySource[source] {
			err := fault(c, len(valid))
			if err == nil && tenant != "" && ofTenant[tenant] >= maxTenantChannels {
				err = errTooManyOfTenant
			}
			if err == nil {
				ofTenant[tenant]++
				valid = append(valid, c)
				continue
			}
			invalid++
			if source == changed {
				n.log.Error(err, "notification.channel.invalid", "source", source, "channel", c.Name)
			}
		}
	}
	n.metrics.configured(len(valid), invalid)
	if err := n.deliverer.Configure(valid); err != nil && !errors.Is(err, deliver.ErrClosed) {
		n.log.Error(err, "notification.channels.refused")
	}
}

// fault says why a channel cannot be one, beside so many others.
func fault(c notify.Channel, others int) error {
	if errs := c.Validate(field.NewPath("channel")); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if others >= maxChannels {
		return errTooMany
	}
	return nil
}

// These errors say that a channel has no place beside others.
var (
	errTooMany         = fmt.Errorf("all policies, Environments and guards together have more than %d channels", maxChannels)
	errTooManyOfTenant = fmt.Errorf("the SpecGuards of a namespace together have more than %d channels", maxTenantChannels)
)

// tenantOf returns the namespace of a SpecGuard by its source; empty for other sources.
func tenantOf(source string) (namespace string) {
	if name, ok := strings.CutPrefix(source, specGuardSource); ok {
		namespace, _, _ = strings.Cut(name, "/")
	}
	return namespace
}

// compareSources sorts by tenant and name; the sources of no tenant come first.
func compareSources(a, b string) int {
	return cmp.Or(cmp.Compare(tenantOf(a), tenantOf(b)), cmp.Compare(a, b))
}

// Close takes nothing more, waits a little for what is under way, and ends. That
// ctx is over cuts nothing short: it is when this is called.
func (n *Notifier) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	if err := n.deliverer.Shutdown(ctx); err != nil {
		n.log.Error(err, "ending notifications")
	}
}
