// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Groups reads the groups of releases whose runs divide replicas.
type Groups interface {
	// ReadGroup returns the zero Arm if the workload is not there. Pods that have restarted count from a time
	// on; none count if the time is zero.
	ReadGroup(ctx context.Context, workload traffic.Workload, since time.Time) (rollout.Arm, error)
}

// reasonScaling says that pods of a group are not ready.
const reasonScaling = "Scaling"

// groupSteps are the steps of a look at a release that divides no requests: no proxy knows of one.
func (r *Reconciler) groupSteps() []func(context.Context, *subject) error {
	return []func(context.Context, *subject) error{r.findRivals, r.rollGroups, r.askGates, r.holdGroups, r.write, r.askExecutor, r.letGoGroups}
}

// rollGroups decides how far the rollout is. The answers of the executor are read before the groups, so that a
// group never seems to be scaled by another writer because of a work that has ended meanwhile.
func (r *Reconciler) rollGroups(ctx context.Context, s *subject) error {
	switch {
	case s.rival != nil:
		return nil
	case r.Revisions == nil || r.Groups == nil:
		s.invalid = errNoDelivery
		return nil
	}
	facts := r.specFacts(ctx, s)
	if facts.Variations = groupOrder(s.release); facts.Problem != "" {
		s.invalid = errors.New(facts.Problem)
	}
	var err error
	if facts.Works, err = r.workAnswers(ctx, s, &facts.Before); err != nil {
		return err
	}
	r.readGroups(ctx, s, &facts, facts.Arms)
	if s.deleting() {
		facts.Deletion = &rollout.Deletion{}
	} else {
		facts.Health = rollout.GroupHealthOf(facts.Before, facts.Arms, s.now.Truncate(time.Second))
	}
	facts.Answers = r.gateAnswers(s)
	decision := rollout.Decide(facts)
	s.rollout, s.tally, s.groups = &decision, rollout.TallyOf(facts, decision), facts.Arms
	r.Metrics.countAnswers(client.ObjectKeyFromObject(s.release), decision.After.Gates, facts.Answers)
	return nil
}

// groupOrder returns the names of both variations, the stable one first.
func groupOrder(of *v1alpha1.ABRelease) [2]string {
	names := [2]string{string(of.Spec.Stable)}
	for i := range of.Spec.Variations {
		if name := of.Spec.Variations[i].Name; name != of.Spec.Stable {
			names[1] = string(name)
		}
	}
	return names
}

// readGroups reads both groups live: a group without replicas has no pods that would tell of another revision. A
// vigil reads none.
func (r *Reconciler) readGroups(ctx context.Context, s *subject, f *rollout.Facts, into map[string]rollout.Arm) {
	if r.Groups == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for name, deployment := range f.Groups.Deployments {
		var since time.Time
		if run := f.Before.Run; run != nil && name == run.Canary && f.Before.Current() > 0 {
			since = run.Stages[f.Before.Current()-1].ShiftTime
		}
		arm, err := r.Groups.ReadGroup(ctx, traffic.Workload{Namespace: s.release.Namespace, Kind: "Deployment", Name: deployment}, since)
		switch {
		case err == nil:
			into[name] = arm
		case f.Groups.Routed: // requests return all the same
			r.tellUnread(s, name, err)
		default:
			r.unread(s, name, err)
		}
	}
}

// joinGroups has what divides requests know of the groups beside. What the Service selects is known without them.
func (r *Reconciler) joinGroups(ctx context.Context, s *subject, f *rollout.Facts) {
	if f.Groups == nil {
		return
	}
	r.readGroups(ctx, s, f, f.Groups.Arms)
	f.JoinGroups()
	s.groups = f.Groups.Arms
}

// holdGroups puts the finalizer on a release that has groups scaled.
func (r *Reconciler) holdGroups(ctx context.Context, s *subject) error {
	if s.rollout == nil || s.deleting() || !s.rollout.After.OwesGroups() {
		return nil
	}
	return r.changeFinalizer(ctx, s, controllerutil.AddFinalizer)
}

// letGoGroups takes the finalizer off a release whose groups have their replicas back.
func (r *Reconciler) letGoGroups(ctx context.Context, s *subject) error {
	if r.Revisions == nil || !controllerutil.ContainsFinalizer(s.release, v1alpha1.FinalizerReturnRequests) {
		return nil
	}
	switch {
	case s.rollout == nil: // another release has the groups
	case !s.deleting() && s.rollout.After.OwesGroups():
		return nil
	case s.deleting() && !s.rollout.Returned: // the Deployments go with the namespace
		namespace := &corev1.Namespace{}
		if err := r.Client.Get(ctx, types.NamespacedName{Name: s.release.Namespace}, namespace); err != nil {
			return fmt.Errorf("reading namespace %s: %w", s.release.Namespace, err)
		}
		if namespace.DeletionTimestamp == nil {
			return nil
		}
	}
	return r.changeFinalizer(ctx, s, controllerutil.RemoveFinalizer)
}

// groupsAgain is when to look again at a release with groups: nothing tells of a Deployment that changes.
func (s *subject) groupsAgain() time.Duration {
	wait := s.groupsEvery()
	if s.gatesAgain > 0 {
		wait = min(wait, s.gatesAgain)
	}
	if at := s.rolloutAgain(); !at.IsZero() {
		wait = min(wait, max(at.Sub(s.now), time.Millisecond))
	}
	return wait
}

// groupsEvery is how often groups are looked at.
func (s *subject) groupsEvery() time.Duration {
	if s.rollout != nil && s.rollout.After.OwesGroups() {
		return s.times.Groups
	}
	return s.times.IdleGroups
}

// rivalText names the release that has the Service or a group already.
func (s *subject) rivalText() string {
	divides := "the requests of Service " + s.release.Spec.ServiceName
	if s.contested != "" {
		divides = "the replicas of Deployment " + s.contested
	}
	return fmt.Sprintf("ABRelease %s divides %s already: delete one of them", s.rival.Name, divides)
}

// writeGroups tells what is seen of both groups.
func (s *subject) writeGroups(status *v1alpha1.ABReleaseStatus) {
	if s.rollout == nil || status.Rollout == nil {
		return
	}
	after := &s.rollout.After
	if rollout.WriteGroups(status.Rollout, *after, s.groups, groupOrder(s.release)); s.release.Spec.HasRequests() {
		return
	}
	status.Split = release.Text(traffic.Shares{{Variation: after.Active, Weight: traffic.Total - s.rollout.Weight}, {Variation: s.rollout.Canary, Weight: s.rollout.Weight}})
}

// writeGroupConditions says whether all pods of both groups are ready, and whether a run is under way.
func (s *subject) writeGroupConditions(set condition.Set, status *v1alpha1.ABReleaseStatus) {
	s.writeProgressing(set)
	switch {
	case s.rival != nil:
		set.Stalled(string(ir.AnotherSplit), s.rivalText())
		return
	case s.sharedCanary != nil:
		set.Stalled(reasonCanaryShared, s.sharedCanary.Error())
		return
	case s.invalid != nil:
		set.Stalled(reasonInvalid, s.invalid.Error())
		return
	case s.unknown || status.Rollout == nil:
		set.Unknown(reasonUnobserved, "the Deployments of the groups could not be read")
		return
	}
	var parts []string
	isReady := true
	for i := range status.Rollout.Groups {
		g := &status.Rollout.Groups[i]
		parts = append(parts, fmt.Sprintf("%s has %d of %d pods ready", g.Variation, *g.Ready, *g.Replicas))
		isReady = isReady && *g.Ready >= *g.Replicas
	}
	if text := strings.Join(parts, ", "); isReady {
		set.Ready(reasonEffective, text)
	} else {
		set.Reconciling(reasonScaling, text)
	}
}
