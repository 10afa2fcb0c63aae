// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// beside answers calls of a sort once so many of them are under way, and returns the
// number of calls that have come.
func beside(w *world, sort string, calls int32) (n *atomic.Int32) {
	all, n := make(chan struct{}), &atomic.Int32{}
	w.fails = func(call, _ string) error {
		if !strings.HasPrefix(call, sort) {
			return nil
		}
		if n.Add(1) == calls {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-time.After(10 * time.Second):
			return errNetwork
		}
	}
	return n
}

func TestBrakesAreReadBesideEachOther(t *testing.T) {
	w := newWorld(t)
	r := w.open()
	came := beside(w, "get ", 4) // policy, Environment and two ledgers
	if brakes := r.look(t.Context()); !brakes.Known {
		t.Errorf("the reads wait for each other: %d have come, want 4", came.Load())
	}
}

func TestPermissionsAreAskedForBesideEachOther(t *testing.T) {
	w := newWorld(t)
	r := w.open()
	came := beside(w, "review ", 3) // get and update of the executor, and update of the requester
	if answer, denied := r.authorize(t.Context(), 0); answer != protocol.Yes {
		t.Errorf("the reviews wait for each other: %d have come, want 3: %v %q", came.Load(), answer, denied)
	}
}

// A read whose goroutine ends has no answer either: nothing may be decided by its zero value.
func TestAReadThatDoesNotReturnHasNoAnswer(t *testing.T) {
	var group sync.WaitGroup
	ended := begin(&group, func() (int, error) { runtime.Goexit(); return 1, nil })
	returned := begin(&group, func() (int, error) { return 1, nil })
	group.Wait()
	if ended.err == nil || returned.err != nil || returned.value != 1 {
		t.Errorf("the answers are %+v and %+v", ended, returned)
	}
}
