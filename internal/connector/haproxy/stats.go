// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"fmt"
	"net/netip"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// SnapshotOf the answers to `show info` and `show stat` of one worker.
func SnapshotOf(info runtimeapi.Info, stats []runtimeapi.Stat) Snapshot {
	s := Snapshot{Worker: Worker{info.PID, info.Uptime}, Arms: map[envoyname.Slot]Counts{}, InFlight: map[envoyname.Slot]uint64{}}
	for _, row := range stats {
		arm, ours := ParseBackend(row.Proxy)
		if !ours {
			continue
		}
		counts := s.Arms[arm]
		switch {
		case row.IsBackend():
			counts.Answered, counts.Failed, counts.ClientErrors, counts.GivenUp = row.Answered(), row.Answers5xx, row.Answers4xx, row.GivenUp
			s.InFlight[arm] = row.Sessions
		case IsFailover(row.Server):
			counts.FailedOver += row.Answered()
		default:
			continue
		}
		s.Arms[arm] = counts
	}
	return s
}

// Compare says which server is not as its slot; nil if all are. A server without a slot is not looked at.
func (a Arms) Compare(servers []runtimeapi.Server) error {
	seen := map[Server]runtimeapi.Server{}
	for _, s := range servers {
		seen[Server{s.Backend, s.Name}] = s
	}
	for _, backend := range sortedNames(a) {
		for _, group := range []struct {
			slots []Slot
			name  func(int) string
		}{{a[backend].Own, serverName}, {a[backend].Failover, failoverName}} {
			for i, slot := range group.slots {
				name := Server{backend, group.name(i)}
				s, is := seen[name]
				if !is {
					return fmt.Errorf("HAProxy has no server %s", name)
				}
				if want := stateWanted[slot.State]; s.State != want || slot.State == Serving && unmapAddress(s.Address) != unmapAddress(slot.Address) {
					return fmt.Errorf("server %s is %s at %s, want %s at %s", name, s.State, s.Address, want, slot.Address)
				}
			}
		}
	}
	return nil
}

var stateWanted = map[SlotState]runtimeapi.ServerState{
	Empty: runtimeapi.Maintenance, Serving: runtimeapi.Ready, Draining: runtimeapi.Draining,
}

func unmapAddress(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
