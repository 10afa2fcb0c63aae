// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// unknownAgain is how soon something that could not be read is read again.
const unknownAgain = 200 * time.Millisecond

// subject is everything known about one object at the start of a reconciliation.
type subject struct {
	key      kube.Key
	resource kube.Resource
	view     kube.View
	snapshot *guards.Snapshot
	rules    specguard.Rules
	// selecting names the guards that select the object, in force or not.
	selecting []string
	// baseline is nil when there is none. While effects are carried out it
	// follows each write.
	baseline *v1alpha1.Baseline
	state    specguard.State
	// cold: the state was made from the Baseline, not remembered.
	cold        bool
	terminating bool
	context     surrounding
	// settings are what holds for its checks and repairs.
	settings resync.Settings
	// asked are the annotations of the object when it was last there.
	asked map[string]string
	// check is one that was made and is not in the Baseline yet.
	check *checks.Answer
	due   time.Time
	now   time.Time
}

// surrounding names what a judgment depends on besides the object.
type surrounding struct {
	guards            int64 // the epoch of the object
	defaults          int64 // likewise
	environment       types.UID
	environmentName   string
	environmentChange int64 // its generation
	stamps            string
}

func (r *Reconciler) surrounding(snapshot *guards.Snapshot, defaults *guarddefaults.Active, key kube.Key) surrounding {
	s := surrounding{guards: snapshot.FindEpoch(key), defaults: defaults.Epoch}
	if e := r.Environments.Of(key.Namespace); e != nil {
		s.environment, s.environmentName, s.environmentChange = e.UID, e.Name, e.Generation
	}
	return s
}

func (s *subject) name() string {
	return specguard.BaselineName(s.resource.Plural, s.key.Group, s.key.Name)
}

func (s *subject) baselineName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.key.Namespace, Name: s.name()}
}

// unguarded says that no guard in force selects the object.
func (s *subject) unguarded() bool { return s.rules.Empty() }

// read gathers what is known. A nil subject without an error means that not
// enough is known yet to decide anything; it is asked again after wait.
func (r *Reconciler) read(ctx context.Context, key kube.Key) (s *subject, wait time.Duration, err error) {
	snapshot, defaults := r.Guards.Snapshot(), r.Defaults.Active()
	if snapshot == nil || defaults == nil {
		return nil, unknownAgain, nil
	}
	s = &subject{key: key, snapshot: snapshot, now: r.Clock.Now(), check: r.Agenda.AnswerOf(key)}
	s.context = r.surrounding(snapshot, defaults, key)
	s.view = r.Objects.View(key)
	s.context.stamps = r.settledStamps(s)
	resource, served := snapshot.Resources[key.GroupVersionKind]
	s.resource = resource
	if !served {
		return r.readUnserved(ctx, s)
	}
	if r.blind(s) {
		return nil, 0, nil
	}
	namespace, known := snapshot.Namespaces[key.Namespace]
	if !known {
		return r.readLostNamespace(s)
	}
	s.terminating = namespace.Terminating
	if err := r.readBaseline(ctx, s); err != nil {
		return nil, 0, r.resolveVersion(ctx, s, err)
	}
	if wait, err := r.loadLabels(ctx, s); err != nil || wait > 0 {
		return nil, wait, err
	}
	s.rules = snapshot.Set.Rules(s.query(namespace))
	s.selecting = s.rules.ListSelectingGuards()
	s.settings = r.resolve(s, defaults)
	if behind, err := r.behind(ctx, s); err != nil || behind {
		r.appoint(s) // a check will tell if the watch does not
		return nil, unknownAgain, err
	}
	if s.view.Unknown != nil && s.baseline == nil {
		return nil, 0, nil
	}
	return s, 0, nil
}

// blind says that nothing can be told for now: the kind is not listed yet, or
// cannot be read for a moment. The object is looked at again when that ends, or
// when it has lasted (see Vigil); only then the state is told to be Unknown.
func (r *Reconciler) blind(s *subject) bool {
	if failure := r.lastingFailure(s.key.GroupVersionKind, s.now); failure != nil {
		s.view.Unknown = fmt.Errorf("%s cannot be read: %w", s.key.Kind, failure)
		return false
	}
	return s.view.Unknown != nil
}

// behind says that what is known of the object is older than what its Baseline
// tells, because another assessor saw more: the API server that is watched lags
// (Kubernetes #59848), or this process was paused. The watch catches up. That an
// object is gone without its deletion having been seen is asked of etcd.
func (r *Reconciler) behind(ctx context.Context, s *subject) (bool, error) {
	last := s.state.Observed
	switch current := s.view.Current; {
	case !s.cold || s.baseline == nil || s.view.Unknown != nil || last.UID == "":
		return false, nil //nolint:nilerr // unknown is a result
	case current != nil:
		return string(current.UID) == last.UID && kube.IsOlder(current.ResourceVersion, last.ResourceVersion), nil
	case len(s.view.Pending) > 0 || last.Hash == specguard.HashAbsent:
		return false, nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(s.key.GroupVersionKind)
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name}, live)
	if failure := client.IgnoreNotFound(err); failure != nil {
		return false, fmt.Errorf("asking whether %s is gone: %w", s.key, failure)
	}
	return err == nil, nil
}

// lastingFailure is why a kind has not been readable for some time; nil when it
// is, or was a moment ago.
func (r *Reconciler) lastingFailure(gvk schema.GroupVersionKind, now time.Time) error {
	health := r.Objects.Health(gvk)
	if health.Failure == nil || errors.Is(health.Failure, kube.ErrNotWatched) ||
		now.Sub(health.FailingSince) < r.Config.UnreadableAfter {
		return nil
	}
	return health.Failure
}

// readUnserved is for an object whose kind no guard in force watches any more.
// Its Baseline, if there is one, is let go of like that of any unguarded object;
// its name cannot be computed then, so it is found by its target.
func (r *Reconciler) readUnserved(ctx context.Context, s *subject) (*subject, time.Duration, error) {
	var list v1alpha1.BaselineList
	if err := r.Client.List(ctx, &list, inNamespace(s.key.Namespace)); err != nil {
		return nil, 0, fmt.Errorf("listing baselines of %s: %w", s.key.Namespace, err)
	}
	for i := range list.Items {
		if KeyOf(&list.Items[i]) == s.key {
			s.baseline = list.Items[i].DeepCopy()
			s.selecting = s.snapshot.Set.Rules(s.query(s.snapshot.Namespaces[s.key.Namespace])).ListSelectingGuards()
			return s, 0, nil
		}
	}
	r.forget(s.key)
	return nil, 0, nil
}

// readLostNamespace is for a namespace that the snapshot does not have: either
// it is new and the snapshot is older, or it is gone and everything in it.
func (r *Reconciler) readLostNamespace(s *subject) (*subject, time.Duration, error) {
	if s.view.Current == nil {
		r.Objects.Settle(s.key, s.view.Pending)
		r.forget(s.key)
		return nil, 0, nil
	}
	return nil, unknownAgain, nil
}

// readBaseline finds the newest known Baseline and the state it stands for.
func (r *Reconciler) readBaseline(ctx context.Context, s *subject) error {
	cached := &v1alpha1.Baseline{}
	err := r.Client.Get(ctx, s.baselineName(), cached)
	switch {
	case apierrors.IsNotFound(err):
		cached = nil
	case err != nil:
		return fmt.Errorf("reading baseline %s: %w", s.baselineName(), err)
	}
	memory, remembers := r.memory.get(s.key)
	s.baseline = cached
	if remembers && memory.written != nil && (cached == nil || newer(memory.written, cached)) {
		s.baseline = memory.written.DeepCopy()
	}
	if s.baseline != nil && KeyOf(s.baseline) != s.key {
		return fmt.Errorf("reading baseline %s: %w", s.baselineName(), errOtherVersion)
	}
	s.due, s.asked = memory.due, memory.asked
	defer s.checkDecides()
	switch {
	case s.baseline == nil:
		s.state = specguard.NewState(s.name(), s.target())
		s.cold = true
	case remembers && agrees(&memory.state, s.baseline):
		s.state = memory.state
		if memory.context != s.context {
			s.due = s.now
		}
	default:
		s.state = specguard.FromBaseline(s.baseline, nil)
		s.cold, s.due = true, s.now
	}
	return nil
}

// checkDecides has the object looked at when a check found another one than its
// Baseline tells of.
func (s *subject) checkDecides() {
	if s.check != nil && s.check.Differs {
		s.due = s.now
	}
}

func (s *subject) target() v1alpha1.BaselineTarget {
	apiVersion, kind := s.key.ToAPIVersionAndKind()
	return v1alpha1.BaselineTarget{APIVersion: apiVersion, Kind: kind, Name: s.key.Name}
}

// query asks for the rules with every set of labels that is known of the
// object, because a tenant may take a label off in the write that drifts.
func (s *subject) query(namespace guards.Namespace) specguard.Query {
	q := specguard.Query{
		Namespace:       s.key.Namespace,
		Name:            s.key.Name,
		NamespaceLabels: namespace.Labels,
		GVK:             canon.GVK(s.key.GroupVersionKind),
		Now:             s.now,
	}
	if s.baseline != nil {
		q.Kept = &s.baseline.Status
	}
	if s.view.Current != nil {
		q.Labels = append(q.Labels, s.view.Current.Labels)
	}
	for _, t := range s.view.Pending {
		if t.Prev != nil {
			q.Labels = append(q.Labels, t.Prev.Labels)
		}
		if t.Next != nil {
			q.Labels = append(q.Labels, t.Next.Labels)
		}
	}
	return q
}

// nothingNew says that neither the object, nor its rules, nor the clock, nor a
// person, nor a record says anything that was not dealt with.
func (r *Reconciler) nothingNew(s *subject) bool {
	switch {
	case len(s.view.Pending) > 0, s.cold:
		return false
	case s.baseline == nil:
		return s.view.Current == nil
	case s.baseline.Spec.Accept != nil, s.baseline.Spec.Lift != nil, s.quarantineUntold():
		return false
	case !s.due.IsZero() && !s.now.Before(s.due):
		return false
	case r.Records.has(s.state.Observed.UID):
		return false
	case !slices.Equal(s.selecting, s.baseline.Status.Guards), s.provenReady(&s.baseline.Status):
		return false
	}
	return (s.view.Unknown != nil) == s.toldUnreadable()
}

// toldUnreadable says that the object is told to be Unknown for a reason that ends
// by reading the object. No second look makes a body or a status smaller.
func (s *subject) toldUnreadable() bool {
	if s.state.Drift != v1alpha1.StateUnknown {
		return false
	}
	ready := readyOf(s.baseline)
	return ready == nil || !slices.Contains(unwritable, ready.Reason)
}

// unwritable are the reasons why a known state or body is not stored.
var unwritable = []string{v1alpha1.ReasonBodyTooLarge, v1alpha1.ReasonStatusTooLarge, v1alpha1.ReasonStatusRefused}

// KeyOf names the object of a Baseline.
func KeyOf(b *v1alpha1.Baseline) kube.Key {
	gvk := canon.ParseGVK(b.Spec.Target.APIVersion, b.Spec.Target.Kind)
	return kube.Key{
		GroupVersionKind: groupVersionKind(gvk), Namespace: b.Namespace, Name: b.Spec.Target.Name,
	}
}
