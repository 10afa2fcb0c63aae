// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// pass lets time pass in a bubble, where it takes none.
func pass(d time.Duration) { <-time.After(d) }

func TestTheLookoutLooksWhenItIsDueAndAgainWhenItWasNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var looked []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(ctx, func() bool {
				looked = append(looked, time.Since(begin))
				return len(looked) != 2
			})
		}()
		pass(time.Minute) // and nothing has changed
		begin = time.Now()
		l.changed(Later)
		pass(50 * time.Millisecond)
		l.changed(Soon)
		pass(time.Second)
		l.changed(Later)
		pass(time.Minute)
		stop()
		<-done
		// After 10 ms; after 100 ms, not believed; and a second after that.
		want := []time.Duration{60 * time.Millisecond, 1150 * time.Millisecond, 2150 * time.Millisecond}
		if diff := cmp.Diff(want, looked); diff != "" {
			t.Errorf("it looked (-want +got):\n%s", diff)
		}
	})
}
