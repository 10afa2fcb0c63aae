// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Recorder takes the record of a write without ever waiting.
// details.Writer is one.
type Recorder interface {
	Enqueue(rec specguard.WriteRecord) bool
}

// Reviewer judges reviews. All fields are set once; its methods may be called
// from any number of goroutines.
type Reviewer struct {
	// Snapshot is the present one; nil before the first.
	Snapshot func() *Snapshot
	Recorder Recorder
	Now      func() time.Time
	// StampWriter sets the writer annotations, for API servers that cannot.
	StampWriter bool
	// StampedGroups are the groups that the annotation keeps.
	StampedGroups []string
}

// pair parses both sides of a review; the caller releases them.
func pair(r *admission.Review) (now, old object, err error) {
	if now, err = parseObject(r.Object, kindOf(r)); err != nil {
		return object{}, object{}, err
	}
	if old, err = parseObject(r.OldObject, kindOf(r)); err != nil {
		now.release()
		return object{}, object{}, err
	}
	return now, old, nil
}
