// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
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
