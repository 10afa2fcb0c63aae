// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// FreezeOf reads the freeze from the status of a guard. A condition without scopes
// comes from a version that froze whole guards, or that names scopes which this
// version does not know: everything is frozen.
func FreezeOf(status *v1alpha1.GuardStatus) Freeze {
	var f Freeze
	if m := status.MassDrift; m != nil {
		if m.EverythingStartTime != nil {
			f.Everything = orPast(m.EverythingStartTime.Time)
		}
		for i := range m.Namespaces {
			f.Namespaces = addScope(f.Namespaces, m.Namespaces[i].Name, orPast(m.Namespaces[i].StartTime.Time))
		}
		for i := range m.Causes {
			c := &m.Causes[i]
			f.Causes = addScope(f.Causes, Cause{Path: c.Path, User: c.User}, orPast(c.StartTime.Time))
		}
	}
	if v1alpha1.IsDegradedFor(status.Conditions, v1alpha1.ReasonMassDrift) && !f.HasScopes() {
		f.Everything = orPast(meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded).LastTransitionTime.Time)
	}
	return f
}

// orPast replaces a time that is not told by one in the past: the scope is frozen.
func orPast(since time.Time) time.Time { return cmp.Or(since, time.Unix(0, 0)) }

// Status writes a Freeze as the status of a guard has it; nil when nothing is frozen.
func (f Freeze) Status() *v1alpha1.MassDrift {
	if !f.HasScopes() {
		return nil
	}
	m := &v1alpha1.MassDrift{}
	if !f.Everything.IsZero() {
		m.EverythingStartTime = new(metav1.NewTime(f.Everything))
	}
	for _, namespace := range slices.Sorted(maps.Keys(f.Namespaces)) {
		m.Namespaces = append(m.Namespaces, v1alpha1.FrozenNamespace{Name: namespace, StartTime: metav1.NewTime(f.Namespaces[namespace])})
	}
	for _, cause := range slices.SortedFunc(maps.Keys(f.Causes), Cause.compare) {
		m.Causes = append(m.Causes, v1alpha1.FrozenCause{Path: cause.Path, User: cause.User, StartTime: metav1.NewTime(f.Causes[cause])})
	}
	return m
}
