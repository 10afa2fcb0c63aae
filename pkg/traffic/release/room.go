// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The bounds of the ledger, for which there is 1 MiB. What is between is for releases that have
// something in force: these always find room.
const (
	// maxLedger is how many bytes all entries take at most before others wait.
	maxLedger = 900 << 10
	// share is how many times more than a namespace takes there has to be left. So one namespace
	// takes a ninth of the ledger at most, eight take half of it together, and what is left
	// for another one never ends: the dynamic threshold of Choudhury and Hahne, "Dynamic Queue
	// Length Thresholds for Shared-Memory Packet Switches", 1998, with α = 1/8.
	share = 8
	// maxStored is how many bytes the entries take at most in any case, and markBytes those of
	// the mark that a Service is gone.
	maxStored = 1000 << 10
	markBytes = len(`,"gone":1772366400`)
)

// FullError says that a namespace has too much of the ledger for one more entry.
type FullError struct {
	Service types.NamespacedName
	// Bytes are what the namespace would take, and Room is what it may.
	Bytes, Room int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the sequences of the Services of namespace %s would take %d bytes with that of %s, and there is room for %d. Delete releases or Services there that are not needed; the sequence of a deleted Service leaves after %d minutes",
		e.Service.Namespace, e.Bytes, e.Service.Name, e.Room, int(KeptFor.Minutes()))
}

// Admit says whether there is room for what the entry of a Service becomes; the error is a
// [FullError]. There is always room for what its holder goes on with.
func Admit(entries map[string]Entry, service types.NamespacedName, becomes Entry) error {
	key := EntryKey(service)
	before, is := entries[key]
	if is && before.Holder == becomes.Holder {
		return nil
	}
	own, others := sizeOf(key, becomes), 0
	for k, e := range entries {
		switch {
		case k == key:
		case strings.HasPrefix(k, service.Namespace+"."):
			own += sizeOf(k, e)
		default:
			others += sizeOf(k, e)
		}
	}
	if room := (maxLedger - others) / (share + 1); own > room {
		return &FullError{service, own, max(room, 0)}
	}
	return nil
}

// Size is how many bytes entries take in the ConfigMap, each with the mark that it may get.
func Size(entries map[string]Entry) (bytes int) {
	for key, e := range entries {
		bytes += sizeOf(key, e)
	}
	return bytes
}

func sizeOf(key string, e Entry) int {
	bytes := len(key) + len(e.String())
	if e.Holder == "" && e.Gone == 0 {
		bytes += markBytes
	}
	return bytes
}
