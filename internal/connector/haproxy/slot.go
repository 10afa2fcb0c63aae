// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"net/netip"
	"slices"
)

// SlotState of a server.
type SlotState int

// The states.
const (
	// Empty is in maintenance and may be given any endpoint.
	Empty SlotState = iota
	// Serving gets requests.
	Serving
	// Draining gets none, and answers those that it has.
	Draining
)

func (s SlotState) String() string { return [...]string{"Empty", "Serving", "Draining"}[s] }

// Slot is a server of a backend, to which an endpoint is given without a reload.
type Slot struct {
	// Address of its endpoint; the zero one if it is empty.
	Address netip.AddrPort
	State   SlotState
}

// fewestSlots of a backend, so that the first endpoints of a variation need no reload.
const fewestSlots = 4

// Place gives each wanted endpoint a slot. An endpoint keeps its slot, and comes back to it while it
// drains. One that is not wanted any more drains, and its slot is empty when it is not busy. If slots
// are missing their number doubles, and then the program has to be reloaded.
func Place(slots []Slot, wanted []netip.AddrPort, busy func(slot int) bool) []Slot {
	next := slices.Clone(slots)
	var homeless []netip.AddrPort
	for _, address := range wanted {
		if i := slices.IndexFunc(next, func(s Slot) bool { return s.State != Empty && s.Address == address }); i >= 0 {
			next[i].State = Serving
		} else if !slices.Contains(homeless, address) {
			homeless = append(homeless, address)
		}
	}
	for i, s := range next {
		switch {
		case s.State == Empty || slices.Contains(wanted, s.Address):
		case s.State == Serving:
			next[i].State = Draining
		case !busy(i):
			next[i] = Slot{}
		}
	}
	for _, address := range homeless {
		i := slices.Index(next, Slot{})
		if i < 0 {
			i = len(next)
			next = append(next, make([]Slot, max(fewestSlots, len(next)))...)
		}
		next[i] = Slot{address, Serving}
	}
	if len(next) == 0 {
		return make([]Slot, fewestSlots)
	}
	return next
}

// Server is a slot by the names of HAProxy.
type Server struct{ Backend, Name string }

func (s Server) String() string { return s.Backend + "/" + s.Name }

// Commands of the Runtime API that bring the servers of a backend from some slots to others. There are as
// many of both; name is the name of a slot.
func Commands(backend string, name func(int) string, before, after []Slot) []string {
	var all []string
	set := func(i int, format string, args ...any) {
		all = append(all, "set server "+Server{backend, name(i)}.String()+" "+fmt.Sprintf(format, args...))
	}
	for i := range min(len(before), len(after)) {
		if before[i] == after[i] {
			continue
		}
		switch after[i].State {
		case Empty:
			set(i, "state maint")
		case Draining:
			set(i, "state drain")
		case Serving:
			if before[i].Address != after[i].Address {
				set(i, "addr %s port %d", after[i].Address.Addr(), after[i].Address.Port())
			}
			set(i, "state ready")
		}
	}
	return all
}
