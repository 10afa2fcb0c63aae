// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strconv"
	"time"
)

// stampPolicy plays the policy that stamps writers, which can be deleted and
// made again.
type stampPolicy struct {
	inForce bool
	// made counts how often it was made anew, since when and at which version.
	made  int
	since time.Time
	rv    int
}

func (p *stampPolicy) remove() { p.inForce = false }

func (p *stampPolicy) make(now time.Time, rv int) {
	*p = stampPolicy{inForce: true, made: p.made + 1, since: now, rv: rv}
}

// stamps is what the assessor knows of the policy when it looks at an object.
func (p *stampPolicy) stamps(o Observation) Stamps {
	if !p.inForce {
		return Stamps{}
	}
	s := Stamps{Policy: "policy-" + strconv.Itoa(p.made), Since: p.since}
	if present, ok := o.(Present); ok {
		rv, err := strconv.Atoi(present.ResourceVersion)
		s.Written, s.Confirmed = err == nil && rv > p.rv, true
	}
	return s
}
