// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

var canaryArm = envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}

func TestCountsSinceASnapshot(t *testing.T) {
	at := func(pid int, uptime time.Duration, c Counts) Snapshot {
		return Snapshot{Worker: Worker{pid, uptime}, Arms: map[envoyname.Slot]Counts{canaryArm: c}}
	}
	before := at(7, time.Minute, Counts{Answered: 10, Failed: 2, ClientErrors: 1, FailedOver: 3, GivenUp: 4})
	for name, tc := range map[string]struct {
		now, want Counts
		pid       int
		uptime    time.Duration
	}{
		"the same worker counts on": {
			Counts{Answered: 15, Failed: 3, ClientErrors: 1, FailedOver: 3, GivenUp: 6}, Counts{Answered: 5, Failed: 1, GivenUp: 2}, 7, time.Hour,
		},
		"nothing came": {
			Counts{Answered: 10, Failed: 2, ClientErrors: 1, FailedOver: 3, GivenUp: 4}, Counts{}, 7, time.Minute,
		},
		"another worker begins from 0": {Counts{Answered: 12, Failed: 2}, Counts{Answered: 12, Failed: 2}, 8, time.Hour},
		"a later worker with its PID":  {Counts{Answered: 12, Failed: 2}, Counts{Answered: 12, Failed: 2}, 7, time.Second},
		"somebody has cleared them":    {Counts{Answered: 4, Failed: 1}, Counts{Answered: 4, Failed: 1}, 7, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := at(tc.pid, tc.uptime, tc.now).Since(before)
			if d := cmp.Diff(map[envoyname.Slot]Counts{canaryArm: tc.want}, got); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
		})
	}
}

func TestASnapshotHasTheCountsOfArms(t *testing.T) {
	p := portset.Divided(portset.ByHeader, 500, portset.Force)
	arm, forcedArm := BackendName(p, p.Arms[0]), BackendName(p, p.Arms[1])
	got := SnapshotOf(runtimeapi.Info{PID: 7, Uptime: time.Minute}, []runtimeapi.Stat{
		{Proxy: arm, Server: "s1", Answers2xx: 5, Answers5xx: 1},
		{Proxy: arm, Server: "f1", Answers2xx: 2},
		{Proxy: arm, Server: "f2", Answers5xx: 1},
		{Proxy: arm, Server: "BACKEND", Sessions: 3, Answers1xx: 1, Answers2xx: 7, Answers3xx: 1, Answers4xx: 2, Answers5xx: 4, AnswersOther: 1, GivenUp: 5},
		{Proxy: forcedArm, Server: "BACKEND", Answers2xx: 1},
		{Proxy: "plb_shop_web_80", Server: "BACKEND", Answers2xx: 99},
		{Proxy: "theirs", Server: "BACKEND", Answers2xx: 99},
	})
	forced := canaryArm
	forced.Forced = true
	want := Snapshot{
		Worker: Worker{7, time.Minute},
		Arms: map[envoyname.Slot]Counts{
			canaryArm: {Answered: 16, Failed: 4, ClientErrors: 2, FailedOver: 3, GivenUp: 5}, forced: {Answered: 1},
		},
		InFlight: map[envoyname.Slot]uint64{canaryArm: 3, forced: 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("snapshot (-want +got):\n%s", d)
	}
}
