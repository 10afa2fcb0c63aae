// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChangesThatComeTogetherAreLookedAtTogether(t *testing.T) {
	every := func(d time.Duration, n int) (at []time.Duration) {
		for i := range n {
			at = append(at, time.Duration(i)*d)
		}
		return at
	}
	const ms = time.Millisecond
	tests := map[string]struct {
		changes, looks []time.Duration
	}{
		"a change alone is looked at when it is quiet":            {[]time.Duration{0}, []time.Duration{25 * ms}},
		"changes that follow soon are looked at with the first":   {[]time.Duration{0, 20 * ms, 40 * ms}, []time.Duration{65 * ms}},
		"changes that go on are looked at after a while all same": {every(10*ms, 25), []time.Duration{100 * ms, 200 * ms, 265 * ms}},
		"a change that comes later is looked at by itself":        {[]time.Duration{0, 30 * ms}, []time.Duration{25 * ms, 55 * ms}},
		"changes at once are looked at once":                      {[]time.Duration{0, 0, 0}, []time.Duration{25 * ms}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var s settling
				looks := make(chan time.Duration, 16)
				for _, at := range tc.changes {
					<-time.After(at - time.Since(begun))
					synctest.Wait() // a look that is due comes first
					s.note(func() { looks <- time.Since(begun) })
				}
				<-time.After(time.Second)
				synctest.Wait()
				var got []time.Duration
				for len(looks) > 0 {
					got = append(got, <-looks)
				}
				if diff := cmp.Diff(tc.looks, got); diff != "" {
					t.Errorf("looks (-want +got):\n%s", diff)
				}
			})
		})
	}
}
