// SPDX-License-Identifier: Apache-2.0

package bluegreen_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// inPhase is an input of a standby that came to a phase a while ago. All that was read is as it has to be there.
func inPhase(phase v1alpha1.StandbyPhase, ago time.Duration) *bluegreen.Input {
	in := &bluegreen.Input{
		Now: epoch, Timeout: 10 * time.Minute, Creatable: 44 * time.Second, Outlived: time.Minute,
		Name: func(number int32) string { return fmt.Sprint("standby-", number) },
		Stored: &v1alpha1.StepStandby{
			Phase: phase, PhaseTime: metav1.NewTime(epoch.Add(-ago)), Number: 1, Name: "standby-1", ServiceName: "front", Replicas: 3, TargetReplicas: 3,
			StartTime: metav1.NewTime(epoch.Add(-ago)), Evidence: &v1alpha1.StepEvidence{Sequence: 1, Digest: "d"},
		},
		Seen: &bluegreen.Seen{
			Known: true, ServiceName: "front", Replicas: 3,
			Target:  bluegreen.Workload{Exists: true, Ready: true, ReadyReplicas: 3},
			Standby: bluegreen.Workload{Exists: true, Ready: true, ReadyReplicas: 3},
			Release: bluegreen.Release{Exists: true, InForce: true},
		},
	}
	switch phase {
	case v1alpha1.StandbyServing:
		in.Seen.Release.ToStandby = true
	case v1alpha1.StandbyReturning:
		in.Seen.Release.ToStandby = true
	case v1alpha1.StandbyPreparing, v1alpha1.StandbySwitching, v1alpha1.StandbyDraining, v1alpha1.StandbyRemoving, v1alpha1.StandbyRemoved:
	}
	return in
}

// describe is a decision in one line.
func describe(d bluegreen.Decision) string {
	switch {
	case d.Done:
		return "done"
	case d.Store != nil:
		return fmt.Sprintf("store %s %d", d.Store.Phase, d.Store.Number)
	case d.Wait != nil:
		return fmt.Sprintf("wait %s: %s", d.Wait.Until.Sub(epoch), d.Wait.Why)
	case d.Refused != "":
		return "refuse: " + d.Refused
	}
	return string(d.Act)
}

type decisionCase struct {
	phase  v1alpha1.StandbyPhase
	ago    time.Duration
	change func(*bluegreen.Input)
	want   string
}

func check(t *testing.T, decide func(*bluegreen.Input) bluegreen.Decision, cases map[string]decisionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := inPhase(tc.phase, tc.ago)
			if tc.change != nil {
				tc.change(in)
			}
			if got := describe(decide(in)); got != tc.want && (!strings.HasSuffix(tc.want, "…") || !strings.HasPrefix(got, strings.TrimSuffix(tc.want, "…"))) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

const (
	preparing = v1alpha1.StandbyPreparing
	switching = v1alpha1.StandbySwitching
	serving   = v1alpha1.StandbyServing
	returning = v1alpha1.StandbyReturning
	draining  = v1alpha1.StandbyDraining
	removing  = v1alpha1.StandbyRemoving
	removed   = v1alpha1.StandbyRemoved
)

func TestServe(t *testing.T) {
	check(t, bluegreen.Serve, map[string]decisionCase{
		"the first one reads":               {change: func(in *bluegreen.Input) { in.Stored, in.Seen = nil, nil }, want: "Read"},
		"what cannot be read waits":         {change: func(in *bluegreen.Input) { in.Stored, in.Seen = nil, &bluegreen.Seen{Why: "no answer"} }, want: "wait 2s: its standby could not be read: no answer"},
		"the first one is begun":            {change: func(in *bluegreen.Input) { in.Stored = nil }, want: "store Preparing 1"},
		"another one is begun":              {phase: removed, want: "store Preparing 2"},
		"an obstacle refuses":               {phase: removed, change: func(in *bluegreen.Input) { in.Seen.Obstacle = "NoService: x" }, want: "refuse: NoService: x"},
		"no replicas are refused":           {phase: removed, change: func(in *bluegreen.Input) { in.Seen.Replicas = 0 }, want: "refuse: NoReplicas: …"},
		"an unknown time waits":             {phase: removed, change: func(in *bluegreen.Input) { in.TimeUnknown = true }, want: "wait 2s: the time of the API server is not known"},
		"the ABRelease is made":             {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{} }, want: "MakeRelease"},
		"the ABRelease is made in time":     {preparing, 44 * time.Second, func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{} }, "refuse: its standby could not be made in time…"},
		"the Deployment is made":            {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Standby = bluegreen.Workload{} }, want: "MakeStandby"},
		"the Deployment gets its record":    {phase: preparing, change: func(in *bluegreen.Input) { in.Stored.Evidence = nil }, want: "Note"},
		"an obstacle that came later":       {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Obstacle = "SharedService: x" }, want: "refuse: SharedService: x"},
		"a foreign ABRelease refuses":       {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Release.Foreign = true }, want: "refuse: another object…"},
		"a foreign Deployment refuses":      {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Standby.Foreign = true }, want: "refuse: another object…"},
		"pods are waited for":               {preparing, time.Minute, func(in *bluegreen.Input) { in.Seen.Standby.Ready, in.Seen.Standby.Why = false, "quota" }, "wait 2s: its standby is not ready: quota"},
		"pods are waited for until":         {preparing, 10 * time.Minute, func(in *bluegreen.Input) { in.Seen.Standby.Ready, in.Seen.Standby.Why = false, "quota" }, "refuse: after 10m0s in the phase Preparing, its standby is not ready: quota"},
		"proxies are waited for":            {phase: preparing, change: func(in *bluegreen.Input) { in.Seen.Release.InForce = false }, want: "wait 2s: proxies do not have its ABRelease…"},
		"it is prepared":                    {phase: preparing, want: "store Switching 1"},
		"the requests move":                 {phase: switching, want: "Switch"},
		"a refused switch":                  {phase: switching, change: func(in *bluegreen.Input) { in.Acted = &bluegreen.Acted{Refused: "no"} }, want: "refuse: no"},
		"a switch without an answer waits":  {phase: switching, change: func(in *bluegreen.Input) { in.Acted, in.Seen = &bluegreen.Acted{Lost: true}, nil }, want: "wait 2s: a request about the standby has no answer"},
		"proxies that have not acknowledge": {switching, time.Minute, func(in *bluegreen.Input) { in.Seen.Release.ToStandby, in.Seen.Release.InForce = true, false }, "wait 2s: proxies do not send…"},
		"and never do":                      {switching, 10 * time.Minute, func(in *bluegreen.Input) { in.Seen.Release.ToStandby, in.Seen.Release.InForce = true, false }, "refuse: after 10m0s in the phase Switching…"},
		"a standby that is gone":            {phase: switching, change: func(in *bluegreen.Input) { in.Seen.Standby = bluegreen.Workload{} }, want: "refuse: another writer removed its standby"},
		"all requests have moved":           {phase: switching, change: func(in *bluegreen.Input) { in.Seen.Release.ToStandby = true }, want: "store Serving 1"},
		"it serves":                         {phase: serving, want: "done"},
		"it serves no more":                 {phase: serving, change: func(in *bluegreen.Input) { in.Seen.Release.ToStandby = false }, want: "refuse: another writer moved the requests away from its standby"},
		"its share is withheld":             {phase: serving, change: func(in *bluegreen.Input) { in.Seen.Release.InForce = false }, want: "wait 2s: proxies do not send…"},
		"the last one is removed first":     {phase: draining, want: "wait 15s: its standby answers requests that are under way"},
	})
}

func TestRetire(t *testing.T) {
	keeps := "wait 2s: its standby keeps the requests until 3 pods of the target are ready, and "
	ill := func(ready int32) func(*bluegreen.Input) {
		return func(in *bluegreen.Input) { in.Seen.Target = bluegreen.Workload{Exists: true, ReadyReplicas: ready} }
	}
	check(t, bluegreen.Retire, map[string]decisionCase{
		"nothing was begun":                      {change: func(in *bluegreen.Input) { in.Stored = nil }, want: "done"},
		"nothing is left":                        {phase: removed, want: "done"},
		"no request moved":                       {phase: preparing, want: "store Removing 1"},
		"a request may have moved":               {phase: switching, want: "store Returning 1"},
		"requests have moved":                    {phase: serving, want: "store Returning 1"},
		"the target is ready":                    {phase: returning, want: "Return"},
		"the target has as many pods as before":  {phase: returning, change: ill(3), want: "Return"},
		"the target has fewer pods":              {phase: returning, change: ill(2), want: keeps + "2 are now; …"},
		"the target has fewer pods for an hour":  {returning, time.Hour, ill(2), keeps + "2 are now; …"},
		"the target was ill before":              {phase: returning, change: func(in *bluegreen.Input) { ill(0)(in); in.Stored.TargetReplicas = 0 }, want: "wait 2s: its standby keeps the requests until 1 pod…"},
		"the target is gone":                     {phase: returning, change: func(in *bluegreen.Input) { in.Seen.Target = bluegreen.Workload{} }, want: "Return"},
		"the standby answers no more":            {phase: returning, change: func(in *bluegreen.Input) { ill(0)(in); in.Seen.Standby.ReadyReplicas = 0 }, want: "Return"},
		"a refused return waits":                 {phase: returning, change: func(in *bluegreen.Input) { in.Acted = &bluegreen.Acted{Refused: "no"} }, want: "wait 2s: a request about the standby was refused: no"},
		"proxies have not acknowledged":          {returning, time.Hour, func(in *bluegreen.Input) { in.Seen.Release.ToStandby, in.Seen.Release.InForce = false, false }, "wait 2s: its standby stays…"},
		"no proxy is there":                      {phase: returning, change: func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{Exists: true, NoProxies: true} }, want: "store Draining 1"},
		"all proxies have acknowledged":          {phase: returning, change: func(in *bluegreen.Input) { in.Seen.Release.ToStandby = false }, want: "store Draining 1"},
		"requests under way are waited for":      {draining, 20 * time.Second, func(in *bluegreen.Input) { in.Seen.Release.InFlight = 4 }, "wait 2s: its standby has not answered 4 requests"},
		"and for a minute at most":               {draining, time.Minute, func(in *bluegreen.Input) { in.Seen.Release.InFlight = 4 }, "store Removing 1"},
		"proxies may not have told yet":          {phase: draining, ago: 14 * time.Second, want: "wait 1s: its standby answers requests that are under way"},
		"nothing is under way":                   {phase: draining, ago: 15 * time.Second, want: "store Removing 1"},
		"a person moved requests to it again":    {phase: draining, ago: time.Hour, change: func(in *bluegreen.Input) { in.Seen.Release.ToStandby = true }, want: "store Returning 1"},
		"and later":                              {phase: removing, change: func(in *bluegreen.Input) { in.Seen.Release.ToStandby = true }, want: "store Returning 1"},
		"it is removed":                          {phase: removing, want: "Remove"},
		"its record comes first":                 {phase: removing, change: func(in *bluegreen.Input) { in.Stored.Evidence = nil }, want: "Note"},
		"it is being removed":                    {phase: removing, change: func(in *bluegreen.Input) { in.Seen.Release.Ending = true }, want: "wait 2s: its ABRelease is being deleted"},
		"it is gone, and a creation may be late": {removing, 59 * time.Second, func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{} }, "wait 1s: a request to make its standby may still be under way"},
		"it is gone for good":                    {removing, time.Minute, func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{} }, "store Removed 1"},
		"another writer removed it":              {returning, time.Minute, func(in *bluegreen.Input) { in.Seen.Release = bluegreen.Release{} }, "store Removed 1"},
		"another ABRelease has the name":         {removing, time.Minute, func(in *bluegreen.Input) { in.Seen.Release.Foreign = true }, "store Removed 1"},
	})
}
