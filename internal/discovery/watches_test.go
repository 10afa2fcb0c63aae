// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// M7: a replica that was cut off from the API server stayed ready for ever.
func TestAReplicaTakesItselfOutWhen(t *testing.T) {
	const silent = -1
	for name, tc := range map[string]struct {
		own    time.Duration // ago something came by a watch
		leader time.Duration // ago the leader heard something, or silent
		told   time.Duration // ago the leader said so
		out    bool
		old    bool
	}{
		"its watches are old and those of the leader are not": {time.Minute, time.Second, time.Second, true, true},
		"but not while its watches go on":                     {5 * time.Second, time.Second, time.Second, false, false},
		"but not while they are silent for a moment only":     {20 * time.Second, time.Second, time.Second, false, true},
		"but not while those of the leader are as old":        {time.Minute, time.Minute, time.Second, false, true},
		"but not when the leader has said so long ago":        {time.Minute, time.Second, time.Minute, false, true},
		"but not while nobody leads":                          {time.Hour, silent, 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakeClock(begin)
			w := NewWatches(c, 0)
			steps := map[time.Duration]func(){tc.own: w.hear}
			c.SetTime(begin.Add(-tc.own))
			steps[tc.own]()
			if tc.leader != silent {
				c.SetTime(begin.Add(-tc.told))
				w.tell(tc.leader)
			}
			c.SetTime(begin)
			if err := w.Check(); (err != nil) != tc.out {
				t.Errorf("the check says %v", err)
			}
			if w.old() != tc.old {
				t.Errorf("its views are old: %v", w.old())
			}
		})
	}
}

func TestAReplicaThatHasJustBegunIsNotOld(t *testing.T) {
	w := NewWatches(clocktesting.NewFakeClock(begin), 0)
	w.tell(0)
	if w.old() || w.Check() != nil {
		t.Errorf("it is old: %v", w.Check())
	}
}
