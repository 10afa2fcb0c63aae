// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// maxNamed bounds the frozen scopes that a message names.
const maxNamed = 3

// freeze decides the mass drift of a guard.
func (c *Status) freeze(conditions condition.Set, status *v1alpha1.GuardStatus, tally guards.Tally) {
	next := specguard.NextFreeze(specguard.FreezeOf(status), tally.Population, c.Clock.Now())
	status.MassDrift = next.Status()
	var known []condition.Degradation
	if status.MassDrift != nil {
		known = append(known, condition.Degradation{
			Reason:  v1alpha1.ReasonMassDrift,
			Message: fmt.Sprintf("%d of %d objects drift; not repaired by itself: %s", tally.Drifted, tally.Objects, scopes(status.MassDrift)),
		})
	}
	conditions.Degraded("too few objects drift to assume one cause", known...)
}

// scopes names the frozen namespaces and causes.
func scopes(m *v1alpha1.MassDrift) string {
	var parts []string
	if m.EverythingStartTime != nil {
		parts = append(parts, "everything, because more namespaces or causes are frozen than status.massDrift lists")
	}
	for i := range m.Namespaces {
		parts = append(parts, "namespace "+m.Namespaces[i].Name)
	}
	for i := range m.Causes {
		parts = append(parts, "drift "+describe(&m.Causes[i]))
	}
	if more := len(parts) - maxNamed; more > 0 {
		parts = append(parts[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

func describe(cause *v1alpha1.FrozenCause) string {
	where, by := "of whole objects", "by unknown writers"
	if cause.Path != "" {
		where = "at " + cause.Path
	}
	if cause.User != "" {
		by = "by " + cause.User
	}
	return where + " " + by
}

// tellMassDrift makes one event where each object makes one of its own: their guard
// tells their common cause. The event follows the write of the status, so that a
// write that is tried again tells nothing twice.
func (c *Status) tellMassDrift(g runtime.Object, before, after *v1alpha1.GuardStatus) {
	was, now := specguard.FreezeOf(before), specguard.FreezeOf(after)
	switch begun := now.SubtractScopes(was); {
	case begun.HasScopes():
		c.Recorder.Eventf(g, nil, corev1.EventTypeWarning, v1alpha1.ReasonMassDrift, actionCount,
			"so much drifts at once that one cause is assumed; not repaired by itself: %s", scopes(begun.Status()))
	case was.HasScopes() && !now.HasScopes():
		c.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "MassDriftEnded", actionCount, "few enough objects drift to take each for itself again")
	}
}
