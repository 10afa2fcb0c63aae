// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
			l.run(ctx, func(dirty) bool {
				looked = append(looked, time.Since(begin))
				return len(looked) != 2
			})
		}()
		pass(time.Minute) // and nothing has changed
		begin = time.Now()
		l.changed(Later, dirty{})
		pass(50 * time.Millisecond)
		l.changed(Soon, dirty{})
		pass(time.Second)
		l.changed(Later, dirty{})
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

// A rollback waited for the look that took everything along that had changed before it.
func TestWhatIsDecidedTakesNothingAlongThatMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookout(clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var looked []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(ctx, func(d dirty) bool {
				looked = append(looked, fmt.Sprint(time.Since(begin), " ", slices.Sorted(maps.Keys(d.namespaces)), " ", d.everything))
				return !d.namespaces["doubted"]
			})
		}()
		in := func(namespace string) dirty { return dirty{namespaces: map[string]bool{namespace: true}} }
		l.changed(Later, dirty{everything: true})
		l.changed(Later, in("bank"))
		l.changed(AtOnce, in("shop"))
		pass(200 * time.Millisecond)
		l.changed(AtOnce, in("doubted"))
		pass(1500 * time.Millisecond)
		stop()
		<-done
		want := []string{"0s [shop] false", "100ms [bank] true", "200ms [doubted] false", "1.2s [doubted] false"}
		if diff := cmp.Diff(want, looked); diff != "" {
			t.Errorf("it looked (-want +got):\n%s", diff)
		}
	})
}
