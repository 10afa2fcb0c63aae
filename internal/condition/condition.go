// SPDX-License-Identifier: Apache-2.0

// Package condition sets the conditions of objects. The API conventions of Kubernetes read
// an absent condition as Unknown, so each condition is written from the first status on, and
// is False where it does not hold. Reconciling and Stalled alone follow kstatus
// (sigs.k8s.io/cli-utils, pkg/kstatus): they are abnormal-true, so they are there only while
// they are True, and never both.
package condition

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// MaxMessage is the longest message the API server takes, in bytes.
const MaxMessage = 32768

// Set changes the conditions of one object in one reconciliation.
type Set struct {
	Conditions *[]metav1.Condition
	// Generation of the object that the conditions speak of.
	Generation int64
	Now        time.Time
}

// Ready says that the object is in force, or in sync.
func (s Set) Ready(reason, message string) {
	s.True(v1alpha1.ConditionReady, reason, message)
	s.clear(v1alpha1.ConditionReconciling)
	s.clear(v1alpha1.ConditionStalled)
}

// NotReady says that observation is complete and found something wrong, which
// is not a lag: Reconciling and Stalled are cleared.
func (s Set) NotReady(reason, message string) {
	s.Put(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	s.clear(v1alpha1.ConditionReconciling)
	s.clear(v1alpha1.ConditionStalled)
}

// Unknown says that the state cannot be told.
func (s Set) Unknown(reason, message string) {
	s.Put(v1alpha1.ConditionReady, metav1.ConditionUnknown, reason, message)
	s.clear(v1alpha1.ConditionReconciling)
	s.clear(v1alpha1.ConditionStalled)
}

// Reconciling says that work is under way which ends by itself.
func (s Set) Reconciling(reason, message string) {
	s.Put(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	s.True(v1alpha1.ConditionReconciling, reason, message)
	s.clear(v1alpha1.ConditionStalled)
}

// Stalled says that only a change of the spec, or of the cluster, can help.
func (s Set) Stalled(reason, message string) {
	s.Put(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	s.clear(v1alpha1.ConditionReconciling)
	s.True(v1alpha1.ConditionStalled, reason, message)
}

// True sets a condition that holds.
func (s Set) True(kind, reason, message string) {
	s.Put(kind, metav1.ConditionTrue, reason, message)
}

// False sets a condition that does not hold, and tells what holds instead.
func (s Set) False(kind, reason, message string) {
	s.Put(kind, metav1.ConditionFalse, reason, message)
}

// Degradation is one way in which an object works less well than its spec has it.
type Degradation struct{ Reason, Message string }

// Degraded sets Degraded by what is known, the most severe first. The reason is that of the
// first, and the message tells all. otherwise is the message where nothing is known.
func (s Set) Degraded(otherwise string, known ...Degradation) {
	switch len(known) {
	case 0:
		s.False(v1alpha1.ConditionDegraded, "NotDegraded", otherwise)
	case 1:
		s.True(v1alpha1.ConditionDegraded, known[0].Reason, known[0].Message)
	default:
		told := make([]string, 0, len(known))
		for _, d := range known {
			told = append(told, d.Reason+": "+d.Message)
		}
		s.True(v1alpha1.ConditionDegraded, known[0].Reason, strings.Join(told, "; "))
	}
}

// clear removes Reconciling or Stalled. No other condition is ever removed.
func (s Set) clear(kind string) {
	meta.RemoveStatusCondition(s.Conditions, kind)
}

// Put sets a condition that is in none of the ways above. What others wrote, such
// as names and reasons, is in messages, so these are made printable, as those of
// events are.
func (s Set) Put(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: diff.TruncateText(diff.Printable(message), MaxMessage),
		ObservedGeneration: s.Generation,
		LastTransitionTime: metav1.NewTime(s.Now),
	})
}
