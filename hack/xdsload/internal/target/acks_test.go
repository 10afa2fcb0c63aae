// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

func TestAProxyThatAcknowledgesTwiceIsOne(t *testing.T) {
	a := &Acks{}
	a.Begin(&ads.Resource{}, "", 3)
	want := a.now.Load()
	var all sync.WaitGroup
	for _, proxy := range []string{"a", "a", "b", "b", "c", "d"} {
		all.Go(func() { want.acked(proxy) })
	}
	if got := len(a.Await(t.Context())); got < 3 {
		t.Errorf("%d have acknowledged when three are awaited", got)
	}
	all.Wait()
	if got := len(a.Await(t.Context())); got != 4 {
		t.Errorf("%d have acknowledged, want 4", got)
	}
}

func TestItIsNotWaitedForNobody(t *testing.T) {
	a := &Acks{}
	a.Begin(&ads.Resource{}, "", 0)
	if got := a.Await(t.Context()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	a.Begin(&ads.Resource{}, "", 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := a.Await(ended); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
