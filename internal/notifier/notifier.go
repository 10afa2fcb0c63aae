// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
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
	// maxChannels of all policies together; package notify takes no more.
	maxChannels = 512
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

// Notifier tells people about plans. It is safe for concurrent use; end it with
// Close.
type Notifier struct {
	cached    client.Reader
	deliverer *deliver.Notifier
	metrics   *metrics
	log       logr.Logger

	mu       sync.Mutex
	byPolicy map[string][]notify.Channel
}

// New makes one that knows no channels yet.
func New(c Config) (*Notifier, error) {
	m, err := newMetrics(c.Registry)
	if err != nil {
		return nil, err
	}
	return &Notifier{
		cached: c.Cached, metrics: m, log: c.Log, byPolicy: map[string][]notify.Channel{},
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
	channels := n.learn(policy)
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

// learn takes over the channels of a policy and gives those that can be told.
func (n *Notifier) learn(policy *v1alpha1.RemediationPolicy) []notify.Channel {
	n.mu.Lock()
	defer n.mu.Unlock()
	channels := Channels(policy)
	if known, ok := n.byPolicy[policy.Name]; !ok || !reflect.DeepEqual(known, channels) {
		n.byPolicy[policy.Name] = channels
		n.configure(policy.Name)
	}
	return slices.DeleteFunc(slices.Clone(channels), func(c notify.Channel) bool { return fault(c, 0) != nil })
}

// forget drops the channels of a policy that is gone, and what waits for them.
func (n *Notifier) forget(policy string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.byPolicy[policy]; ok {
		delete(n.byPolicy, policy)
		n.configure(policy)
	}
}

// configure makes the channels of all policies those of the deliverer. One that is
// invalid is left out, for it must not silence the others; it is in the log when
// its policy has changed.
func (n *Notifier) configure(changed string) {
	var valid []notify.Channel
	invalid := 0
	for _, policy := range slices.Sorted(maps.Keys(n.byPolicy)) {
		for _, c := range n.byPolicy[policy] {
			err := fault(c, len(valid))
			if err == nil {
				valid = append(valid, c)
				continue
			}
			invalid++
			if policy == changed {
				n.log.Error(err, "notification.channel.invalid", "policy", policy, "channel", c.Name)
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

// errTooMany says that a channel has no place beside those of other policies.
var errTooMany = errors.New("there are too many channels in all policies together")

// Close takes nothing more, waits a little for what is under way, and ends. That
// ctx is over cuts nothing short: it is when this is called.
func (n *Notifier) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	if err := n.deliverer.Shutdown(ctx); err != nil {
		n.log.Error(err, "ending notifications")
	}
}
