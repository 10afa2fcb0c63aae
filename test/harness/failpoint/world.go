// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// Names of writes, see cmd/assessor/failpoint_transport.go.
const (
	Created    = "plan Created: Planned, Planned"
	Granted    = "the cluster's ledger: 1 granted, 0 ended, 0 records"
	Claimed    = "claim web"
	Intended   = "plan Running: Intent, Planned"
	Effect     = "write web"
	Applied    = "plan Running: Applied, Planned"
	Verified   = "plan Running: Verified, Planned"
	StepRecord = "record 2"

	GrantedToo    = "the Environment's ledger: 1 granted, 0 ended, 1 records"
	SettledToo    = "the Environment's ledger: 1 granted, 1 ended, 2 records"
	GrantedNext   = "the cluster's ledger: 2 granted, 1 ended, 0 records"
	SucceededPlan = "plan Succeeded: Verified settled recorded, Verified settled recorded"
)

// Batch is how many worlds are prepared at once: together they wait for less, and
// each one that is there costs the assessor a little.
const Batch = 25

// World is one with a policy, and two Deployments that have drifted.
type World struct {
	*remediation.World
	// OwnPolicy is the one that its plans are of.
	OwnPolicy *v1alpha1.RemediationPolicy
	t         *testing.T
}

// MakeWorlds makes worlds.
func (c *Cluster) MakeWorlds(t *testing.T, n int, changes ...func(*v1alpha1.RemediationPolicySpec)) []*World {
	t.Helper()
	worlds := c.MakeEmptyWorlds(t, n, changes...)
	remediation.Drifted(within(worlds), "web", "api")
	return worlds
}

// MakeEmptyWorlds makes worlds with nothing in them.
func (c *Cluster) MakeEmptyWorlds(t *testing.T, n int, changes ...func(*v1alpha1.RemediationPolicySpec)) []*World {
	t.Helper()
	var worlds []*World
	for range n {
		w := remediation.NewWorld(t, c.Cluster, c.audit)
		w.Guard()
		worlds = append(worlds, &World{World: w, OwnPolicy: w.Policy(changes...), t: t})
	}
	remediation.UnderGuards(within(worlds))
	return worlds
}

func within(worlds []*World) []*remediation.World {
	var inner []*remediation.World
	for _, w := range worlds {
		inner = append(inner, w.World)
	}
	return inner
}

// Within is the world in a test within the test.
func (w *World) Within(t *testing.T) *World {
	return &World{World: w.World.Within(t), OwnPolicy: w.OwnPolicy, t: t}
}

// MakePlan makes the plan that every test is about.
func (w *World) MakePlan() *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.Plan(w.OwnPolicy, "web", "api")
}

// UntilSucceeded waits until a plan has ended well, and checks that nothing is wrong
// then and that all is as after an undisturbed run.
func (w *World) UntilSucceeded(plan *v1alpha1.RemediationPlan, f *Files) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.UntilWell(plan, f)
	want, err := os.ReadFile(UndisturbedPath())
	w.Must(err)
	w.CheckLeft(p, f, string(want))
	return p
}

// CheckLeft checks that a plan has left what an undisturbed run leaves.
func (w *World) CheckLeft(p *v1alpha1.RemediationPlan, f *Files, want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Account(p, f.Records)); diff != "" {
		w.t.Errorf("it ended otherwise than undisturbed (-want +got):\n%s", diff)
	}
}

// UndisturbedPath is the path of the file that has what an undisturbed run leaves.
func UndisturbedPath() string { return testdata("undisturbed.txt") }

// UntilAnnounced waits until a plan has ended and says that people were told.
func (w *World) UntilAnnounced(plan *v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.UntilPlan(plan, "its end is announced", func(p *v1alpha1.RemediationPlan) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAnnounced)
	})
}

// UntilWell waits until a plan has ended well, and checks that nothing is wrong then.
func (w *World) UntilWell(plan *v1alpha1.RemediationPlan, f *Files) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.UntilAnnounced(plan)
	if p.Status.Phase != v1alpha1.PlanSucceeded {
		w.t.Fatalf("the plan is %s", remediation.Describe(p))
	}
	for _, name := range []string{"web", "api"} {
		w.UntilIs(name, "InSync")
	}
	w.UntilRight(f, p)
	return p
}

// UntilRight waits until nothing is wrong: the audit log may be a moment late.
func (w *World) UntilRight(f *Files, plans ...*v1alpha1.RemediationPlan) {
	w.t.Helper()
	poll.Until(w.t, Patience/6, "nothing is wrong", func() error {
		if wrong := w.Verdict(f.Records, plans...); len(wrong) > 0 {
			return fmt.Errorf("%q", wrong)
		}
		return nil
	})
}

// UntilCanceled waits until a plan says that it is canceled. From then on nothing of
// it may be stored, see [World.CheckQuiet].
func (w *World) UntilCanceled(plan *v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.Ended(plan)
	if p.Status.Phase != v1alpha1.PlanCanceled {
		w.t.Fatalf("the plan is %s", remediation.Describe(p))
	}
	return p
}

// CheckQuiet checks that no write of the executor was stored after a plan said that it
// had ended. Versions tell the order: all objects have theirs from one counter.
func (w *World) CheckQuiet(p *v1alpha1.RemediationPlan) {
	w.t.Helper()
	log := w.Writes()
	end := w.number(p.ResourceVersion)
	for i := range log.Writes {
		write := &log.Writes[i]
		if !write.Certain || write.After == "" || w.number(write.After) > end {
			w.t.Errorf("%s %s was stored as version %q, and the plan had ended at %d", write.Verb, write.Name, write.After, end)
		}
	}
}

func (w *World) number(version string) uint64 {
	w.t.Helper()
	n, err := strconv.ParseUint(version, 10, 64)
	w.Must(err)
	return n
}

// CountEffects counts the writes of steps to a target that were stored.
func (w *World) CountEffects(name string) int {
	w.t.Helper()
	log := w.Writes()
	n := 0
	for i := range log.Writes {
		if write := &log.Writes[i]; write.Name == name && !write.Fence {
			n++
		}
	}
	return n
}

// CheckImage checks what a Deployment runs.
func (w *World) CheckImage(name, image string) {
	w.t.Helper()
	if got := w.Live(name).Spec.Template.Spec.Containers[0].Image; got != image {
		w.t.Errorf("%s runs %s, want %s", name, got, image)
	}
}

// CheckStates checks how a plan ended.
func (w *World) CheckStates(p *v1alpha1.RemediationPlan, want string) {
	w.t.Helper()
	var states []string
	for i := range p.Status.Steps {
		states = append(states, strings.TrimSpace(string(p.Status.Steps[i].State)+" "+string(p.Status.Steps[i].Reason)))
	}
	if got := string(p.Status.Phase) + ": " + strings.Join(states, ", "); got != want {
		w.t.Errorf("the plan is %s, want %s", remediation.Describe(p), want)
	}
}

// CheckLines checks what somebody said.
func CheckLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// UntilReady waits until an executor has read everything.
func (w *World) UntilReady(e *Executor) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx(), Patience)
	defer cancel()
	w.Must(e.Ready(ctx))
}

// UntilTold waits until a Baseline is in a state whose severity is known.
func (w *World) UntilTold(name string, state v1alpha1.DriftState) {
	w.t.Helper()
	w.Until(name, "it is told as "+string(state), func(b *v1alpha1.Baseline) error {
		if b.Status.State != state || b.Status.Severity == nil {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
}

// CheckUntouched checks that no write of the executor to a Deployment was stored.
func (w *World) CheckUntouched(name string) {
	w.t.Helper()
	if n := w.CountEffects(name); n != 0 {
		w.t.Errorf("the executor wrote %s %d times", name, n)
	}
}
