// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func nameOf(namespace, service string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: service}
}

// admitted has a release hold one more Service, if there is room.
func admitted(entries map[string]release.Entry, service types.NamespacedName, name string) error {
	e, _ := release.EntryOf(entries, service).Hold(name, strings.Repeat("u", 36), 0)
	if err := release.Admit(entries, service, e); err != nil {
		return err
	}
	entries[release.EntryKey(service)] = e
	return nil
}

// fill has namespaces take entries in turns until each is refused.
func fill(t *testing.T, entries map[string]release.Entry, namespaces int, service, name string) {
	t.Helper()
	full := make([]bool, namespaces)
	for i, left := 0, namespaces; left > 0; i++ {
		for n := range namespaces {
			if full[n] {
				continue
			}
			err := admitted(entries, nameOf(fmt.Sprintf("evil-%d", n), fmt.Sprintf("%d-%s", i, service)), name)
			if err != nil && !errors.As(err, new(*release.FullError)) {
				t.Fatal(err)
			}
			if err != nil {
				full[n] = true
				left--
			}
		}
	}
}

// M3 of the review of the mesh: eight namespaces with a thousand entries each filled the ledger
// for all others.
func TestNamespacesThatTakeAllTheyCanLeaveRoomForOthers(t *testing.T) {
	long := strings.Repeat("r", 1000)
	for name, tc := range map[string]struct{ namespaces, want int }{
		"one":         {1, 85 << 10},
		"eight":       {8, 50 << 10},
		"fifty":       {50, 12 << 10},
		"two hundred": {200, 3 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			entries := map[string]release.Entry{}
			fill(t, entries, tc.namespaces, "s", long)
			if size := release.Size(entries); size > 900<<10 {
				t.Fatalf("they have %d bytes", size)
			}
			before := release.Size(entries)
			for i := 0; ; i++ {
				if err := admitted(entries, nameOf("shop", fmt.Sprint("web-", i)), long); err != nil {
					break
				}
			}
			if got := release.Size(entries) - before; got < tc.want {
				t.Errorf("another namespace has room for %d bytes, want %d", got, tc.want)
			}
			if size := release.Size(entries); size > 900<<10 {
				t.Errorf("with it they have %d bytes", size)
			}
		})
	}
}

func TestANamespaceThatIsFullIsTold(t *testing.T) {
	entries := map[string]release.Entry{}
	fill(t, entries, 1, "s", "web")
	var full *release.FullError
	if err := admitted(entries, nameOf("evil-0", "more"), "web"); !errors.As(err, &full) || full.Bytes <= full.Room {
		t.Fatalf("one more: %v", err)
	}
	for _, want := range []string{"namespace evil-0 would take", "with that of more", "Delete releases or Services there", "after 45 minutes"} {
		if !strings.Contains(full.Error(), want) {
			t.Errorf("it says %s, without %q", full, want)
		}
	}
	held := nameOf("evil-0", "0-s")
	e, _ := entries[release.EntryKey(held)].Hold("web", strings.Repeat("u", 36), 0)
	if err := release.Admit(entries, held, e); err != nil {
		t.Errorf("the holder goes on: %v", err)
	}
	// A release that is made anew would take more than the entry that nothing holds.
	for key, e := range entries {
		entries[key] = e.Settle()
	}
	for i := range 3000 {
		entries[release.EntryKey(nameOf("evil-0", fmt.Sprint("settled-", i)))] = release.Entry{Plain: 1000}
	}
	if err := admitted(entries, held, "web"); !errors.As(err, &full) {
		t.Errorf("a release of a Service that has an entry takes more room than there is: %v", err)
	}
}
