// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Reasons of conditions that are not those of a problem.
const (
	reasonEffective     = "Effective"
	reasonInvalid       = "Invalid"
	reasonAcknowledging = "Acknowledging"
	reasonOutOfSync     = "OutOfSync"
	reasonUnobserved    = "Unobserved"
	reasonAcknowledged  = "Acknowledged"
	reasonNobody        = "NoProxies"
	reasonOverdue       = "DeadlineExceeded"
	reasonProceeded     = "Proceeded"
)

// write stores what was decided and seen, if people see anything new in it, and tells
// them. What is in force is in this one write, which fails when somebody else was
// faster: then all is looked at again.
func (r *Reconciler) write(ctx context.Context, s *subject) error {
	was := s.release.Status.DeepCopy()
	status := &s.release.Status
	status.ObservedGeneration = s.release.Generation
	s.decision.After.Write(status)
	s.writeSince(was, status)
	s.writeSeen(status)
	r.writeRollout(s, was, status)
	r.writeRouters(s, status)
	s.writeConditions(status)
	if err := rollout.Fit(status); err != nil { // the API server takes it all the same
		r.Log.Info("the status of a release is larger than it is to be", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
	}
	name := client.ObjectKeyFromObject(s.release)
	if !r.worth(s, was) {
		r.Metrics.note(name, was)
		return nil
	}
	if err := r.Client.Status().Update(ctx, s.release); err != nil {
		return fmt.Errorf("writing the status of release %s/%s: %w", s.release.Namespace, s.release.Name, err)
	}
	r.written.note(s.release, s.now)
	r.Metrics.note(name, &s.release.Status)
	r.Metrics.count(s.tally)
	r.tell(s, was)
	return nil
}

// writeSince says since when it is in force.
func (s *subject) writeSince(was, status *v1alpha1.ABReleaseStatus) {
	switch {
	case s.decision.After == nil:
		status.EffectiveTime = nil
	case was.Effective == nil || was.Effective.Sequence != status.Effective.Sequence || status.EffectiveTime == nil:
		status.EffectiveTime = new(metav1.NewTime(s.now).Rfc3339Copy())
	}
}

// worth says whether people see anything new. What was counted changes always, and is
// stored now and then.
func (r *Reconciler) worth(s *subject, was *v1alpha1.ABReleaseStatus) bool {
	if r.written.age(client.ObjectKeyFromObject(s.release), s.now) >= s.times.Counts {
		return !equality.Semantic.DeepEqual(was, &s.release.Status)
	}
	a, b := was.DeepCopy(), s.release.Status.DeepCopy()
	uncounted(a)
	uncounted(b)
	return !equality.Semantic.DeepEqual(a, b)
}

// uncounted is a status without what follows from counts alone: that it contradicts
// stays, and by how many requests does not.
func uncounted(status *v1alpha1.ABReleaseStatus) {
	for i := range status.Observed {
		o := &status.Observed[i]
		o.Requests, o.Failed, o.InFlight, o.SharePercent, o.UncountedProxies, o.WindowSeconds = nil, nil, nil, nil, nil, 0
	}
	if c := status.Acknowledged; c != nil { // pods come and go
		c.Pods, c.ProxiedPods, c.RoutingPods = 0, 0, 0
	}
	if in := status.Rollout; in != nil {
		in.Analysis = nil
		if in.Waiting != nil {
			in.Waiting.Message = ""
		}
		for i := range in.Gates {
			g := &in.Gates[i]
			g.Value, g.Message, g.AnswerTime = "", "", metav1.Time{}
		}
	}
	if told := toldReasons(status); slices.ContainsFunc(told, func(reason string) bool { return slices.Contains(countedReasons, reason) }) {
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded).Message = strings.Join(told, " ")
	}
}

func (s *subject) writeConditions(status *v1alpha1.ABReleaseStatus) {
	set := condition.Set{Conditions: &status.Conditions, Generation: s.release.Generation, Now: s.now}
	if !s.release.Spec.HasRequests() {
		s.writeGroupConditions(set, status)
		return
	}
	s.writeReady(set)
	s.writeProgressing(set)
	if s.decision.After == nil {
		for _, kind := range []string{v1alpha1.ConditionAcknowledged, v1alpha1.ConditionDegraded} {
			set.Put(kind, metav1.ConditionUnknown, "NotEffective", "no split is effective")
		}
		return
	}
	s.writeAcknowledged(set)
	s.writeDegraded(set)
}

// writeReady says whether what is wanted is what happens.
func (s *subject) writeReady(set condition.Set) {
	switch {
	case s.rival != nil:
		set.Stalled(string(ir.AnotherSplit), s.rivalText())
	case s.invalid != nil && s.decision.After == nil:
		set.Stalled(reasonInvalid, s.invalid.Error())
	case s.invalid != nil:
		set.Stalled(reasonInvalid, s.invalid.Error()+"; the former split stays effective")
	case s.refused() != nil:
		set.Stalled(string(s.refused().Reason), s.refused().Message)
	case s.sharedCanary != nil:
		set.Stalled(reasonCanaryShared, s.sharedCanary.Error())
	case len(s.decision.After.Withheld()) > 0:
		set.NotReady(v1alpha1.ReasonNoReadyEndpoints, s.clampedText(s.decision.After.Withheld()))
	default:
		s.writeStanding(set)
	}
}

// writeStanding says whether proxies have what is in force.
func (s *subject) writeStanding(set condition.Set) {
	switch s.standing() {
	case release.Acknowledged:
		set.Ready(reasonEffective, s.effectiveText())
	case release.Proceeded:
		set.Ready(reasonProceeded, s.effectiveText()+"; "+s.overdueText()+", and the release goes on without them")
	case release.Unrouted:
		set.NotReady(reasonNobody, s.nobodyText())
	case release.NotYetRedirected:
		set.NotReady(v1alpha1.ReasonNotYetRedirected, s.olderText())
	case release.Overdue:
		set.Stalled(reasonOverdue, s.overdueText()+s.holdText())
	case release.Unobserved:
		set.Unknown(reasonUnobserved, "it is effective, and the "+s.nameRouters()+" do not report it")
	case release.Acknowledging:
		set.Reconciling(reasonAcknowledging, s.acknowledgingText())
	}
}

func (s *subject) clampedText(withheld []string) string {
	return fmt.Sprintf("%s: no ready endpoints; its requests go to %s until it has had some for %s", strings.Join(withheld, ", "), s.decision.After.Wanted.Stable(), "10s")
}

// effectiveText says what is in force, and what about its pods is not as somebody may
// think.
func (s *subject) effectiveText() string {
	parts := []string{release.Text(s.decision.After.Split.Shares)}
	for _, p := range s.mesh.Problems {
		if !p.Refused && !passesTheSplit(p.Reason) {
			parts = append(parts, p.Message)
		}
	}
	return strings.Join(parts, "; ")
}

// passesTheSplit says that requests go where the split does not send them.
func passesTheSplit(r ir.Reason) bool { return r == ir.SelectorsOverlap || r == ir.IPv6NotSplit }

func (s *subject) pastTheSplit() []ir.Problem {
	return slices.DeleteFunc(slices.Clone(s.mesh.Problems), func(p ir.Problem) bool { return !passesTheSplit(p.Reason) })
}

// refused is a problem that keeps the Service from being divided.
func (s *subject) refused() *ir.Problem {
	for i := range s.mesh.Problems {
		if p := &s.mesh.Problems[i]; p.Refused && p.Object.Kind == "ABRelease" {
			return p
		}
	}
	return nil
}

// since is when a condition became what it is; zero if it is not True.
func since(status *v1alpha1.ABReleaseStatus, kind string) time.Time {
	c := meta.FindStatusCondition(status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
