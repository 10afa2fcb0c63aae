// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"math"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// MaxStatusBytes bounds the status of a Baseline as JSON. etcd refuses a request of
// 1.5 MiB, and each cache of Baselines holds each status. JSON writes a control
// character as six bytes, so bounds of characters do not bound this.
const MaxStatusBytes = 128 << 10

const (
	// maxMaskBytes bounds the masks as JSON. A mask that is left out of the status
	// alone would turn into drift at a restart, so the masks have their own bound.
	maxMaskBytes = 32 << 10
	// maxGuards bounds the guards that a status names.
	maxGuards = 128
	// maxConditionBytes bounds the message of a condition in a status that is too large.
	maxConditionBytes = 1 << 10
)

// reductions make a status smaller, the least needed parts first. Findings that are
// left out stay counted. State keeps each part that only the status leaves out.
var reductions = []func(*v1alpha1.BaselineStatus){
	func(s *v1alpha1.BaselineStatus) { keepReversalPlaces(s, 4) },
	func(s *v1alpha1.BaselineStatus) { keepReversalPlaces(s, 1) },
	func(s *v1alpha1.BaselineStatus) { keepValues(s, 8) },
	func(s *v1alpha1.BaselineStatus) { keepValues(s, 0) },
	func(s *v1alpha1.BaselineStatus) { s.Reversals = nil },
	func(s *v1alpha1.BaselineStatus) { keepFindings(s, 32) },
	func(s *v1alpha1.BaselineStatus) { keepFindings(s, 16) },
	func(s *v1alpha1.BaselineStatus) { keepFindings(s, 8) },
	cutMessages,
	func(s *v1alpha1.BaselineStatus) { keepContention(s, 2) },
	func(s *v1alpha1.BaselineStatus) { keepFindings(s, 2) },
	func(s *v1alpha1.BaselineStatus) { s.Observed.Metadata = nil },
}

// BoundStatus leaves parts out of a status until it has at most MaxStatusBytes as
// JSON. It returns false for a status that stays too large.
func BoundStatus(status *v1alpha1.BaselineStatus) bool {
	for _, reduce := range reductions {
		if encodedBytes(status) <= MaxStatusBytes {
			return true
		}
		reduce(status)
	}
	return encodedBytes(status) <= MaxStatusBytes
}

// MinimizeStatus leaves of a status only the fields that judgment needs, in state
// Unknown. The caller adds the reason. For every field that is kept, there is a
// bound that no object moves.
func MinimizeStatus(status *v1alpha1.BaselineStatus) {
	status.State = v1alpha1.StateUnknown
	status.Masks, status.Reversals = nil, nil
	cutMessages(status)
	keepFindings(status, 1)
	keepValues(status, 0)
	for i := range status.Findings {
		f := &status.Findings[i]
		f.Path, f.Actor.BreakGlassReason = diff.TruncateText(f.Path, 1024), ""
		f.Actor.User, f.Actor.FieldManager = diff.TruncateText(f.Actor.User, maxIdentityBytes), diff.TruncateText(f.Actor.FieldManager, maxManagerBytes)
	}
	status.Observed.Metadata = nil
	status.Observed.Writer = diff.TruncateText(status.Observed.Writer, maxIdentityBytes)
	if status.Contention != nil {
		status.Contention = &v1alpha1.Contention{StartTime: status.Contention.StartTime}
	}
}

func keepReversalPlaces(s *v1alpha1.BaselineStatus, most int) {
	for i := range s.Reversals {
		s.Reversals[i].Places = s.Reversals[i].Places[:min(len(s.Reversals[i].Places), most)]
	}
}

// keepValues keeps the values of the worst findings.
func keepValues(s *v1alpha1.BaselineStatus, most int) {
	for i := range s.Findings[min(len(s.Findings), most):] {
		f := &s.Findings[most+i]
		f.Before, f.After = "", ""
	}
}

func keepFindings(s *v1alpha1.BaselineStatus, most int) {
	s.Findings = s.Findings[:min(len(s.Findings), most)]
}

func keepContention(s *v1alpha1.BaselineStatus, most int) {
	if c := s.Contention; c != nil {
		c.With, c.Places = c.With[:min(len(c.With), most)], c.Places[:min(len(c.Places), most)]
	}
}

func cutMessages(s *v1alpha1.BaselineStatus) {
	for i := range s.Conditions {
		s.Conditions[i].Message = diff.TruncateText(s.Conditions[i].Message, maxConditionBytes)
	}
}

// encodedBytes measures a value as JSON, which is how a client sends it and how the
// API server stores it.
func encodedBytes(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return math.MaxInt // a value that cannot be encoded cannot be written
	}
	return len(raw)
}
