// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ofPolicy tells the creation of a policy and its present conditions. The place of an event is its type without
// the kind.
func ofPolicy(p *v1alpha1.RemediationPolicy) []Entry {
	newEntry := func(t wire.EventType, at metav1.Time, message string) Entry {
		word := strings.TrimPrefix(string(t), "policy.")
		return entryOf(&p.ObjectMeta, word, at.Time, wire.Event{Type: t, PolicyID: string(p.UID), Status: word, Message: message})
	}
	all := []Entry{newEntry(wire.EventPolicyCreated, p.CreationTimestamp, "")}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if t := typeOf(c); t != "" {
			all = append(all, newEntry(t, c.LastTransitionTime, c.Message))
		}
	}
	slices.SortStableFunc(all[1:], func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.ID.Second, y.ID.Second), cmp.Compare(x.ID.Place, y.ID.Place))
	})
	return all
}

// typeOf is empty for a condition that tells no event.
func typeOf(c *metav1.Condition) wire.EventType {
	holds := c.Status == metav1.ConditionTrue
	switch {
	case c.Type == v1alpha1.ConditionReady && holds:
		return wire.EventPolicyReady
	case c.Type == v1alpha1.ConditionReady:
		return wire.EventPolicyNotReady
	case c.Type == v1alpha1.ConditionDegraded && holds:
		return wire.EventPolicyDegraded
	case c.Type == v1alpha1.ConditionStalled && holds:
		return wire.EventPolicyStalled
	}
	return ""
}
