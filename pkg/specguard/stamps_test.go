// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strconv"
	"testing"
	"time"
)

// stampPolicy plays the policy that stamps writers, which can be deleted and
// made again.
type stampPolicy struct {
	inForce bool
	// webhook says that the webhook stamps, with the policy or without.
	webhook bool
	// made counts how often it was made anew, since when and at which version.
	made  int
	since time.Time
	rv    int
}

func (p *stampPolicy) remove() { p.inForce = false }

func (p *stampPolicy) isStamped() bool { return p.inForce || p.webhook }

func (p *stampPolicy) make(now time.Time, rv int) {
	*p = stampPolicy{inForce: true, webhook: p.webhook, made: p.made + 1, since: now, rv: rv}
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

func TestAPathIsStampedByItsFirstSegment(t *testing.T) {
	for name, tc := range map[string]struct {
		path string
		want bool
	}{
		"a field of the spec":                 {"/spec/replicas", true},
		"content outside of the spec":         {"/data/key", true},
		"a top-level field itself":            {"/subjects", true},
		"a field of a custom kind":            {"/values/image", true},
		"metadata":                            {"/metadata/labels/a", false},
		"the status":                          {"/status/replicas", false},
		"a field of content of the same name": {"/spec/status", true},
		"the whole object":                    {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stamped(mustPath(t, tc.path)); got != tc.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
