// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Bounds of the status.
const (
	maxOutOfSync = 10
	maxWhy       = 256
	maxName      = 317
)

// writeSeen says what is known of the proxies and of the variations. While nobody was
// asked, what is known of the proxies is that it is unknown.
func (s *subject) writeSeen(status *v1alpha1.ABReleaseStatus) {
	if s.decision.After == nil {
		status.Acknowledged, status.Observed = nil, nil
		return
	}
	if s.seen == nil {
		if c := status.Acknowledged; c != nil {
			c.Knowledge, c.AcknowledgedProxies, c.OutOfSync, c.Gone, c.Count = v1alpha1.AcknowledgedUnknown, 0, nil, nil, fmt.Sprintf("?/%d", c.Proxies)
		}
	} else {
		status.Acknowledged = acknowledgment(s.seen)
	}
	status.Observed = s.observed()
}

func acknowledgment(seen *traffic.Observation) *v1alpha1.SplitAcknowledgment {
	c := &v1alpha1.SplitAcknowledgment{
		Count: fmt.Sprintf("%d/%d", seen.Acknowledged, seen.Wanted), Knowledge: v1alpha1.AcknowledgmentState(seen.Knowledge),
		Sequence: int64(min(seen.Sequence, math.MaxInt64)), //nolint:gosec // it is bounded
		Proxies:  count(seen.Wanted), AcknowledgedProxies: count(seen.Acknowledged),
	}
	c.OutOfSync, c.Gone = outOfSync(seen.OutOfSync), outOfSync(seen.Gone)
	c.Pods, c.ProxiedPods, c.RoutingPods = count(seen.Around.Pods), count(seen.Around.Proxied), count(seen.Around.Routing)
	return c
}

// outOfSync are the first of them, each once.
func outOfSync(all []traffic.OutOfSync) (first []v1alpha1.OutOfSyncProxy) {
	named := map[string]bool{}
	for _, l := range all {
		if len(first) == maxOutOfSync {
			break
		}
		if l.Name == "" || named[l.Name] {
			continue
		}
		named[l.Name] = true
		outOfSync := v1alpha1.OutOfSyncProxy{Name: diff.TruncateText(l.Name, maxName), Why: diff.TruncateText(diff.Printable(l.Why), maxWhy)}
		if !l.Since.IsZero() {
			at := metav1.NewTime(l.Since).Rfc3339Copy()
			outOfSync.RejectionTime = &at
		}
		first = append(first, outOfSync)
	}
	return first
}

// observed is what is known of each variation: its endpoints, of which this process
// knows, and its requests, of which the router does.
func (s *subject) observed() (observed []v1alpha1.ObservedVariation) {
	var total float64 // proxies may tell any numbers, and their sum may be past all of a kind
	if s.seen != nil {
		for _, arm := range s.seen.Arms {
			if arm.Outcomes != nil {
				total += float64(arm.Outcomes.Completed)
			}
		}
	}
	for _, share := range s.decision.After.Split.Shares {
		o := v1alpha1.ObservedVariation{Variation: v1alpha1.VariationName(share.Variation)}
		n := s.endpoints[share.Variation]
		o.ReadyEndpoints, o.Targets = count(n.Ready), count(n.Targets)
		if arm := s.arm(share.Variation); arm != nil && arm.Outcomes != nil {
			counted(&o, arm.Outcomes, total)
		}
		observed = append(observed, o)
	}
	return observed
}

func counted(o *v1alpha1.ObservedVariation, of *traffic.Outcomes, total float64) {
	o.Requests, o.Failed = new(whole(of.Completed)), new(whole(of.Failed))
	o.InFlight, o.WindowSeconds = new(max(of.InFlight, 0)), count(int(of.Window.Seconds()))
	if of.Uncounted > 0 {
		o.UncountedProxies = new(whole(of.Uncounted))
	}
	if total > 0 {
		o.SharePercent = new(int32(math.Round(100 * float64(of.Completed) / total)))
	}
}

func whole(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // it is bounded

func count(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) } //nolint:gosec // it is bounded

func (s *subject) arm(variation string) *traffic.Arm {
	if s.seen == nil {
		return nil
	}
	for i := range s.seen.Arms {
		if s.seen.Arms[i].Variation == variation {
			return &s.seen.Arms[i]
		}
	}
	return nil
}

// olderText names pods that may have connections which are older than the management of the
// Service, and the end of the wait.
func (s *subject) olderText() string {
	named := s.seen.NotYetRedirected
	rest := ""
	if len(named) > 3 {
		named, rest = named[:3], ", ..."
	}
	return fmt.Sprintf("connections that pods have kept since before Service %s was managed (%s) bypass the split; pods that old: %d: restart %s%s, or wait until %s",
		s.release.Spec.ServiceName, s.decision.After.ManagedSince.UTC().Format(time.RFC3339), len(s.seen.NotYetRedirected),
		strings.Join(named, ", "), rest, s.seen.RedirectedAt.UTC().Format(time.RFC3339))
}

func (s *subject) writeAcknowledged(set condition.Set) {
	const kind = v1alpha1.ConditionAcknowledged
	switch s.standing() {
	case release.Acknowledged:
		set.Put(kind, metav1.ConditionTrue, reasonAcknowledged, s.acknowledgingText())
	case release.NotYetRedirected:
		set.Put(kind, metav1.ConditionFalse, v1alpha1.ReasonNotYetRedirected, s.olderText())
	case release.Unrouted:
		set.Put(kind, metav1.ConditionFalse, reasonNobody, s.nobodyText())
	case release.Overdue:
		set.Put(kind, metav1.ConditionFalse, reasonOverdue, s.overdueText())
	case release.Proceeded:
		set.Put(kind, metav1.ConditionFalse, reasonProceeded, s.overdueText())
	case release.Unobserved:
		set.Put(kind, metav1.ConditionUnknown, reasonUnobserved, s.acknowledgingText())
	case release.Acknowledging:
		if s.seen == nil {
			set.Put(kind, metav1.ConditionUnknown, reasonAcknowledging, s.nameRouters()+" are being told")
			return
		}
		set.Put(kind, metav1.ConditionFalse, reasonOutOfSync, s.acknowledgingText())
	}
}

// acknowledgingText says who has acknowledged what, and names who has not.
func (s *subject) acknowledgingText() string {
	sequence := s.decision.After.Split.Sequence
	if s.seen == nil {
		return fmt.Sprintf("which %s have sequence %d is not known", s.nameRouters(), sequence)
	}
	text := fmt.Sprintf("%d of %d %s have acknowledged sequence %d", s.seen.Acknowledged, s.seen.Wanted, s.nameRouters(), sequence)
	if s.seen.Knowledge == traffic.Accepted && s.now.Before(s.seen.SettledAt) {
		text += "; the router has accepted it, and it counts from " + s.seen.SettledAt.UTC().Format(time.RFC3339)
	}
	if len(s.seen.OutOfSync) > 0 {
		text += "; not " + listed(s.seen.OutOfSync)
	}
	if len(s.seen.Gone) > 0 {
		text += "; not counted: " + listed(s.seen.Gone)
	}
	if len(s.seen.Unheard) > 0 {
		text += "; not heard of: " + strings.Join(s.seen.Unheard, ", ")
	}
	return text
}

// nameRouters returns the noun of the routers that carry the split out.
func (s *subject) nameRouters() string { return s.release.Spec.RouterNoun() }

// listed names the first three proxies.
func listed(proxies []traffic.OutOfSync) string {
	var names []string
	for i, l := range proxies {
		if i == 3 {
			names = append(names, "...")
			break
		}
		names = append(names, l.Name+" ("+l.Why+")")
	}
	return strings.Join(names, ", ")
}

// overdueText says which proxies are late.
func (s *subject) overdueText() string {
	return fmt.Sprintf("%s; the deadline of %s is over", s.acknowledgingText(), s.policy().Deadline)
}

// holdText says what helps a release that holds.
func (s *subject) holdText() string {
	switch isMesh := !s.release.Spec.HasConnectors(); {
	case s.policy().Proceed && isMesh:
		return "; the release does not proceed before one proxy has acknowledged"
	case s.policy().Proceed:
		return "; the release does not proceed before one of the " + s.nameRouters() + " has acknowledged"
	case isMesh:
		return "; mend these proxies, delete their pods, or set spec.acknowledgment.onTimeout to Proceed"
	}
	return "; mend these, or set spec.acknowledgment.onTimeout to Proceed"
}

// nobodyText names the routers that carry out no split, or says how many pods could send requests to the Service by a
// proxy.
func (s *subject) nobodyText() string {
	if len(s.seen.OutOfSync) > 0 {
		return "no program carries the split out: " + listed(s.seen.OutOfSync)
	}
	if !s.release.Spec.UsesMesh() {
		return "no program of the routers could carry the split out"
	}
	around, service := s.seen.Around, s.release.Spec.ServiceName
	text := fmt.Sprintf("no proxy routes requests to Service %s: of %d running pods in namespace %s %d have a proxy, and the proxies of %d route there",
		service, around.Pods, s.release.Namespace, around.Proxied, around.Routing)
	if len(s.seen.Gone) > 0 {
		text += "; not counted: " + listed(s.seen.Gone)
	}
	if around.Proxied == 0 {
		return text + "; give the clients a proxy with the label plumbline.dev/inject=enabled"
	}
	return text + "; in mode explicit name the Service in the annotation plumbline.dev/local-ports of the clients"
}
