// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// spent counts how many of n events are told.
func spent(b *eventBudget, n int, namespace func(int) string, kind specguard.EventType, now time.Time) int {
	told := 0
	for i := range n {
		if b.spend(namespace(i), kind, now) {
			told++
		}
	}
	return told
}

func in(namespace string) func(int) string { return func(int) string { return namespace } }

func TestEventsAreBounded(t *testing.T) {
	const many = 20_000
	warning, normal := specguard.EventWarning, specguard.EventNormal
	everywhere := func(i int) string { return fmt.Sprintf("ns-%d", i%100) }
	tests := map[string]struct {
		before func(*eventBudget)
		of     func(int) string
		kind   specguard.EventType
		want   int
	}{
		"one namespace has its share":              {of: in("shop"), kind: warning, want: int(namespaceEventsAtOnce)},
		"all have what all have together":          {of: everywhere, kind: warning, want: int(eventsAtOnce)},
		"a noisy namespace leaves others theirs":   {before: func(b *eventBudget) { spent(b, many, in("noisy"), warning, epoch) }, of: in("shop"), kind: warning, want: int(namespaceEventsAtOnce)},
		"what CI was let do leaves drift its own":  {before: func(b *eventBudget) { spent(b, many, everywhere, normal, epoch) }, of: in("shop"), kind: warning, want: int(namespaceEventsAtOnce)},
		"a minute later there is some again":       {before: func(b *eventBudget) { spent(b, many, in("shop"), warning, epoch.Add(-time.Minute)) }, of: in("shop"), kind: warning, want: 60 * int(namespaceEventsPerSecond)},
		"an hour later it is what it was at first": {before: func(b *eventBudget) { spent(b, many, everywhere, warning, epoch.Add(-time.Hour)) }, of: everywhere, kind: warning, want: int(eventsAtOnce)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newEventBudget()
			if test.before != nil {
				test.before(b)
			}
			if got := spent(b, many, test.of, test.kind, epoch); got != test.want {
				t.Errorf("%d events are told, want %d", got, test.want)
			}
		})
	}
}

func TestANamespaceBeyondTheBoundHasNoMoreThanItsShare(t *testing.T) {
	b := newEventBudget()
	spent(b, maxShares, func(i int) string { return fmt.Sprint(i) }, specguard.EventNormal, epoch)
	if got, want := spent(b, 2*int(namespaceEventsAtOnce), in("web"), specguard.EventWarning, epoch), int(namespaceEventsAtOnce); got != want {
		t.Errorf("%d events are told, want %d", got, want)
	}
}

func TestSharesOfManyNamespacesAreForgotten(t *testing.T) {
	b := newEventBudget()
	for i := range 5 * maxShares {
		b.spend(fmt.Sprint(i), specguard.EventWarning, epoch)
		if len(b.shares) > maxShares {
			t.Fatalf("the shares of %d namespaces are remembered", len(b.shares))
		}
	}
	if got := spent(b, 10*int(eventsAtOnce), func(i int) string { return fmt.Sprint("more-", i) }, specguard.EventWarning, epoch); got != 0 {
		t.Errorf("with new namespaces %d more events are told", got)
	}
}
