// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestForesee_PassesOverStagesWithoutAVerdict(t *testing.T) {
	s := rollout.Strategy{Stages: []rollout.Stage{
		{Weight: 0, Duration: time.Minute, HealthThreshold: 9500}, {Weight: 1000, Duration: 5 * time.Minute, HealthThreshold: 9500},
		{Weight: 5000, Duration: 10 * time.Minute, HealthThreshold: 9500}, {Weight: traffic.Total, HealthThreshold: 9500},
	}}
	load := judge.Load{RequestsPerMinute: 3000, ErrorRate: 0.003}
	config := judge.DefaultConfig("canary", "stable")
	judged := judge.Foresee(&config, load, []judge.Prospect{{Share: 0.1, Minimum: 5 * time.Minute, HealthThreshold: 9500}, {Share: 0.5, Minimum: 10 * time.Minute, HealthThreshold: 9500}})
	want := []rollout.StageForecast{
		{Duration: time.Minute},
		{Weight: 1000, RequestsPerMinute: 300, IsJudged: true, Duration: 5 * time.Minute, Outlook: judged[0]},
		{Weight: 5000, RequestsPerMinute: 1500, IsJudged: true, Duration: 10 * time.Minute, Outlook: judged[1]},
		{Weight: traffic.Total, RequestsPerMinute: 3000},
	}
	if diff := cmp.Diff(want, s.Foresee(load, rollout.ControlStable)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fresh := judge.Foresee(&config, load, []judge.Prospect{{Share: 0.1, Control: 0.1, Minimum: 5 * time.Minute, HealthThreshold: 9500}, {Share: 0.5, Minimum: 10 * time.Minute, HealthThreshold: 9500}})
	want[1].Outlook, want[2].Outlook = fresh[0], fresh[1]
	if diff := cmp.Diff(want, s.Foresee(load, rollout.ControlFresh)); diff != "" || fresh[0].Tenfold <= judged[0].Tenfold {
		t.Errorf("beside a fresh control a tenfold regression takes %s, and %s without (-want +got):\n%s", fresh[0].Tenfold, judged[0].Tenfold, diff)
	}
	if judged[0].Tenfold == 0 || judged[1].Tenfold == 0 || judged[0].Healthy < 5*time.Minute {
		t.Errorf("the outlooks are %+v", judged)
	}
}
