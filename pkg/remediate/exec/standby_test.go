// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// fakeStandbys have one standby, whose pods and proxies follow at once.
type fakeStandbys struct {
	w        *world
	obstacle string
	seen     bluegreen.Seen
	acts     []bluegreen.Act
	replicas int32
	body     string
}

func (s *fakeStandbys) Read(_ context.Context, _ client.Client, of *StandbyOf) StandbySight {
	seen := s.seen
	seen.Known, seen.Obstacle, seen.ServiceName, seen.Replicas = true, s.obstacle, "front", of.Replicas
	seen.Target = bluegreen.Workload{Exists: true, Ready: true, ReadyReplicas: 3}
	return StandbySight{Seen: seen, Deployment: []byte(s.deployment())}
}

func (s *fakeStandbys) deployment() string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"standby-1","namespace":"shop","uid":"standby-uid","resourceVersion":"5"},"spec":{"replicas":3}}`
}

func (s *fakeStandbys) Carry(_ context.Context, _ client.Client, of *StandbyOf, act bluegreen.Act, _ *StandbySight) (made []byte, acted bluegreen.Acted) {
	s.acts = append(s.acts, act)
	release, standby := &s.seen.Release, &s.seen.Standby
	switch act {
	case bluegreen.MakeRelease:
		*release = bluegreen.Release{Exists: true, InForce: true}
	case bluegreen.MakeStandby:
		*standby = bluegreen.Workload{Exists: true, Ready: true, ReadyReplicas: 3}
		s.replicas, s.body = of.Stored().Replicas, string(of.Body)
		made = []byte(s.deployment())
	case bluegreen.Switch:
		release.ToStandby = true
		s.w.targets.stored = append(s.w.targets.stored, "switch")
	case bluegreen.Return:
		release.ToStandby = false
		s.w.targets.stored = append(s.w.targets.stored, "return")
	case bluegreen.Remove:
		*release, *standby = bluegreen.Release{}, bluegreen.Workload{}
	case bluegreen.Read, bluegreen.Note:
	}
	return made, acted
}

// newStandbyWorld has a plan that repairs web while a standby serves.
func newStandbyWorld(t *testing.T) (*world, *fakeStandbys) {
	t.Helper()
	w := newWorld(t)
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Strategy = v1alpha1.StrategyBlueGreen })
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		w.policy.Spec.Strategy = v1alpha1.StrategyBlueGreen
		p.Spec.Plan.Strategy, p.Spec.Plan.Policy.Digest = v1alpha1.StrategyBlueGreen, planner.Digest(&w.policy.Spec)
	})
	s := &fakeStandbys{w: w}
	w.Standbys = s
	return w, s
}

func TestATargetIsWrittenWhileItsStandbyServes(t *testing.T) {
	w, s := newStandbyWorld(t)
	if out := w.finish(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	step := w.now().Status.Steps[0]
	if step.State != v1alpha1.StepVerified || step.Standby.Phase != v1alpha1.StandbyRemoved || step.Standby.Evidence == nil {
		t.Errorf("the step is %s %s, and its standby %+v", step.State, step.Message, step.Standby)
	}
	if diff := cmp.Diff([]string{"switch", "put web", "return"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if s.replicas != 3 || s.body != authorized {
		t.Errorf("the standby has %d replicas, and is made from %s", s.replicas, s.body)
	}
	w.demandStandbyRecord(evidence.OriginAPIResponse)
}

// demandStandbyRecord checks that one record tells of the Deployment.
func (w *world) demandStandbyRecord(origin evidence.Origin) {
	w.Helper()
	var found []evidence.Record
	for _, r := range w.recorded() {
		if r.Kind == evidence.KindStandby {
			found = append(found, r)
		}
	}
	if len(found) != 1 || found[0].Subject.UID != "standby-uid" || found[0].Result.ResourceVersion != "5" || found[0].Result.Origin != origin {
		w.Errorf("the records of standbys are %+v", found)
	}
}

func TestAnExecutorThatDiesOverAStandbyIsFollowedByOneThatFindsIt(t *testing.T) {
	w, s := newStandbyWorld(t)
	w.records.hangs = func(call string) error {
		if call == "create" && slices.Contains(s.acts, bluegreen.MakeStandby) {
			return errNetwork
		}
		return nil
	}
	w.carry()
	if got := s.acts; !slices.Equal(got, []bluegreen.Act{bluegreen.MakeRelease, bluegreen.MakeStandby}) {
		t.Fatalf("the acts are %v", got)
	}
	w.records.hangs = nil
	w.Holder = "executor-2"
	if out := w.finish(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	w.demandStandbyRecord(evidence.OriginRecovered)
	if diff := cmp.Diff([]string{"switch", "put web", "return"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAStepWithoutAStandbyWritesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world, *fakeStandbys)
		reason v1alpha1.StepReason
		says   string
	}{
		"as something stands against it":     {func(_ *world, s *fakeStandbys) { s.obstacle = "SharedService: others" }, v1alpha1.ReasonNoStandby, "SharedService: others"},
		"as the installation has no mesh":    {func(w *world, _ *fakeStandbys) { w.Standbys = nil }, v1alpha1.ReasonNoStandby, "NoMesh: "},
		"as the requester makes no releases": {func(w *world, _ *fakeStandbys) { w.deny["platform create abreleases"] = true }, v1alpha1.ReasonNotAllowed, "platform, the user of the plan, may not create abreleases for its standby"},
		"as the requester makes no workload": {func(w *world, _ *fakeStandbys) { w.deny["platform create deployments"] = true }, v1alpha1.ReasonNotAllowed, "may not create deployments for its standby"},
		"as the requester removes none":      {func(w *world, _ *fakeStandbys) { w.deny["platform delete abreleases"] = true }, v1alpha1.ReasonNotAllowed, "may not delete abreleases for its standby"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newStandbyWorld(t)
			tc.change(w, s)
			if out := w.finish(); !out.Done {
				t.Fatalf("the plan waits: %s", out.Why)
			}
			step := w.now().Status.Steps[0]
			if step.State != v1alpha1.StepSkipped || step.Reason != tc.reason || !strings.Contains(step.Message, tc.says) || step.Standby != nil {
				t.Errorf("the step is %s %s: %s", step.State, step.Reason, step.Message)
			}
			if len(s.acts) > 0 || len(w.targets.stored) > 0 {
				t.Errorf("it did %v, and wrote %v", s.acts, w.targets.stored)
			}
		})
	}
}

func TestReplicasOf(t *testing.T) {
	for body, want := range map[string]int32{
		`{"spec":{"replicas":5}}`: 5, `{"spec":{"replicas":0}}`: 0, `{"spec":{}}`: 1, `{"spec":{"replicas":-3}}`: 0, ``: 1,
	} {
		if got := replicasOf([]byte(body)); got != want {
			t.Errorf("%q has %d replicas, want %d", body, got, want)
		}
	}
}
