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

func TestAPathIsStampedByItsFirstSegment(t *testing.T) {
	for name, tc := range map[string]struct {
		roots []string
		path  string
		want  bool
	}{
		"the spec, if no root is set": {nil, "/spec/replicas", true},
		"and no other root":           {nil, "/data/key", false},
		"a root that is set":          {[]string{"data"}, "/data/key", true},
		"a root itself":               {[]string{"data"}, "/data", true},
		"but no place of that name":   {[]string{"data"}, "/spec/data", false},
		"nor the whole object":        {[]string{"data"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &step{in: Input{Config: Config{StampedRoots: tc.roots}}}
			if got := s.stamped(mustPath(t, tc.path)); got != tc.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
