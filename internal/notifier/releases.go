// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

const (
	// recent is how long before a process begins to tell events are told: the assessor before may have
	// missed them. An event that is told twice has the same id.
	recent = 2 * time.Minute
	// unassignedAgain is when a release is looked at again while Environments are not known yet.
	unassignedAgain = time.Second
)

// Environments says which one a namespace belongs to.
type Environments interface {
	// Find returns nil for a namespace of no Environment; known is false until Environments were read.
	Find(namespace string) (environment *v1alpha1.Environment, known bool)
}

// Releases tells people what happens to the runs of releases. The lines of the history are numbered, so
// that none is told twice.
type Releases struct {
	People       *Notifier
	Environments Environments
	Clock        clock.PassiveClock

	start sync.Once
	began time.Time // of the first look: a replica that waits for the lease has not begun

	mu   sync.Mutex
	told map[types.NamespacedName]progress
}

// progress is how far people are told of a release.
type progress struct {
	uid    types.UID
	number int64
	// waiting is the last wait for a person.
	waiting string
}

// Register adds the controllers of releases and of the channels of Environments.
func (r *Releases) Register(mgr ctrl.Manager) error {
	channels := reconcile.Func(r.learnChannels)
	err := errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("release-notifier").For(&v1alpha1.ABRelease{}).Complete(r),
		ctrl.NewControllerManagedBy(mgr).Named("release-notifier-channels").
			For(&v1alpha1.Environment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(channels),
	)
	if err != nil {
		return fmt.Errorf("registering the notifier of releases: %w", err)
	}
	return nil
}

// learnChannels takes over the channels of one Environment.
func (r *Releases) learnChannels(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	environment := &v1alpha1.Environment{}
	err := r.People.cached.Get(ctx, request.NamespacedName, environment)
	switch {
	case apierrors.IsNotFound(err):
		r.People.forget(environmentSource(request.Name))
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading Environment %s: %w", request.Name, err)
	default:
		r.People.learn(environmentSource(environment.Name), environmentChannels(environment))
	}
	return reconcile.Result{}, nil
}

// Reconcile tells what is new of one release.
func (r *Releases) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.start.Do(func() { r.began = r.Clock.Now() })
	release := &v1alpha1.ABRelease{}
	err := r.People.cached.Get(ctx, request.NamespacedName, release)
	switch {
	case apierrors.IsNotFound(err):
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading release %s: %w", request, err)
	}
	environment, known := r.Environments.Find(release.Namespace)
	if !known {
		return reconcile.Result{RequeueAfter: unassignedAgain}, nil
	}
	for _, e := range r.news(release) {
		if environment != nil {
			r.People.TellRelease(environment, e)
		}
	}
	return reconcile.Result{}, nil
}

// news lists what was not told of a release, and notes that it is.
func (r *Releases) news(release *v1alpha1.ABRelease) (news []notify.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
	before := r.told[name]
	if before.uid != release.UID {
		before = progress{uid: release.UID}
	}
	events, last := ReleaseEvents(release, before.number, r.began.Add(-recent))
	now := progress{uid: release.UID, number: last, waiting: before.waiting}
	for _, e := range events {
		if e.Type == notify.RunWaiting {
			if e.Transition == before.waiting {
				continue
			}
			now.waiting = e.Transition
		}
		news = append(news, e)
	}
	if r.told == nil {
		r.told = map[types.NamespacedName]progress{}
	}
	r.told[name] = now
	return news
}

func (r *Releases) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, name)
}

// TellRelease tells an event about a release by the channels of an Environment, if the Environment asks
// for such events. It does not wait.
func (n *Notifier) TellRelease(environment *v1alpha1.Environment, e notify.Event) {
	if !WantsRelease(environment.Spec.ReleaseNotifications, e.Type) {
		return
	}
	e.Environment = environment.Name
	// The Environment may have come here before the news of its channels did.
	channels := n.learn(environmentSource(environment.Name), environmentChannels(environment))
	if err := n.deliverer.Notify(e, notify.Route(e, channels)...); err != nil {
		n.untold(e, err)
	}
}

// environmentSource differs from all names of policies.
func environmentSource(name string) string { return "environment:" + name }

func environmentChannels(environment *v1alpha1.Environment) []notify.Channel {
	if environment.Spec.ReleaseNotifications == nil {
		return nil
	}
	return channelsOf(environmentSource(environment.Name), "", environment.Spec.ReleaseNotifications.Channels)
}
