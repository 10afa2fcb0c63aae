// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// Names of writes, see cmd/assessor/failpoint_transport.go.
const (
	created    = "plan Created: Planned, Planned"
	granted    = "the cluster's ledger: 1 granted, 0 ended, 0 records"
	reserved   = "plan Running: Reserved, Planned"
	intended   = "plan Running: Intent, Planned"
	effect     = "write web"
	applied    = "plan Running: Applied, Planned"
	verified   = "plan Running: Verified, Planned"
	settled    = "plan Running: Verified settled, Planned"
	stepRecord = "record 2"

	grantedToo    = "the Environment's ledger: 1 granted, 0 ended, 1 records"
	settledToo    = "the Environment's ledger: 1 granted, 1 ended, 1 records"
	grantedNext   = "the cluster's ledger: 2 granted, 1 ended, 0 records"
	succeededPlan = "plan Succeeded: Verified settled recorded, Verified settled recorded"
)

// world is one with a policy, and two Deployments that have drifted.
type world struct {
	*remediation.World
	t      *testing.T
	c      *cluster
	policy *v1alpha1.RemediationPolicy
}

// prepared makes worlds.
func (c *cluster) prepared(t *testing.T, n int, changes ...func(*v1alpha1.RemediationPolicySpec)) []*world {
	t.Helper()
	worlds := c.empty(t, n, changes...)
	remediation.Drifted(within(worlds), "web", "api")
	return worlds
}

// empty makes worlds with nothing in them.
func (c *cluster) empty(t *testing.T, n int, changes ...func(*v1alpha1.RemediationPolicySpec)) []*world {
	t.Helper()
	var worlds []*world
	for range n {
		w := remediation.NewWorld(t, c.Cluster, c.audit)
		w.Guard()
		worlds = append(worlds, &world{World: w, t: t, c: c, policy: w.Policy(changes...)})
	}
	remediation.UnderGuards(within(worlds))
	return worlds
}

func within(worlds []*world) []*remediation.World {
	var inner []*remediation.World
	for _, w := range worlds {
		inner = append(inner, w.World)
	}
	return inner
}

// Within is the world in a test within the test.
func (w *world) Within(t *testing.T) *world {
	return &world{World: w.World.Within(t), t: t, c: w.c, policy: w.policy}
}

// planned makes the plan that every test is about.
func (w *world) planned() *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.Plan(w.policy, "web", "api")
}

// succeeded waits until a plan has ended well, and checks that nothing is wrong then
// and that all is as after an undisturbed run.
func (w *world) succeeded(plan *v1alpha1.RemediationPlan, f *files) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.well(plan, f)
	want, err := os.ReadFile(undisturbedFile)
	w.Must(err)
	w.leaves(p, f, string(want))
	return p
}

// leaves checks that a plan has left what an undisturbed run leaves.
func (w *world) leaves(p *v1alpha1.RemediationPlan, f *files, want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Account(p, f.Records)); diff != "" {
		w.t.Errorf("it ended otherwise than undisturbed (-want +got):\n%s", diff)
	}
}

// undisturbedFile has what an undisturbed run leaves.
const undisturbedFile = "testdata/undisturbed.txt"

// well waits until a plan has ended well, and checks that nothing is wrong then.
func (w *world) well(plan *v1alpha1.RemediationPlan, f *files) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.Ended(plan)
	if p.Status.Phase != v1alpha1.PlanSucceeded {
		w.t.Fatalf("the plan is %s", remediation.Describe(p))
	}
	for _, name := range []string{"web", "api"} {
		w.UntilIs(name, "InSync")
	}
	w.right(f, p)
	return p
}

// right waits until nothing is wrong: the audit log may be a moment late.
func (w *world) right(f *files, plans ...*v1alpha1.RemediationPlan) {
	w.t.Helper()
	poll.Until(w.t, patience/6, "nothing is wrong", func() error {
		if wrong := w.Verdict(f.Records, plans...); len(wrong) > 0 {
			return fmt.Errorf("%q", wrong)
		}
		return nil
	})
}

// cancelled waits until a plan says that it is cancelled. From then on nothing of it
// may be stored, see [world.quiet].
func (w *world) cancelled(plan *v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.Ended(plan)
	if p.Status.Phase != v1alpha1.PlanCancelled {
		w.t.Fatalf("the plan is %s", remediation.Describe(p))
	}
	return p
}

// quiet checks that no write of the executor was stored after a plan said that it
// had ended. Versions tell the order: all objects have theirs from one counter.
func (w *world) quiet(p *v1alpha1.RemediationPlan) {
	w.t.Helper()
	log, err := w.c.audit.Writes(w.Name)
	w.Must(err)
	end := w.number(p.ResourceVersion)
	for i := range log.Writes {
		write := &log.Writes[i]
		if !write.Certain || write.After == "" || w.number(write.After) > end {
			w.t.Errorf("%s %s was stored as version %q, and the plan had ended at %d", write.Verb, write.Name, write.After, end)
		}
	}
}

func (w *world) number(version string) uint64 {
	w.t.Helper()
	n, err := strconv.ParseUint(version, 10, 64)
	w.Must(err)
	return n
}

// effects counts the writes of steps to a target that were stored.
func (w *world) effects(name string) int {
	w.t.Helper()
	log, err := w.c.audit.Writes(w.Name)
	w.Must(err)
	n := 0
	for i := range log.Writes {
		if write := &log.Writes[i]; write.Name == name && !write.Fence {
			n++
		}
	}
	return n
}

// runs checks what a Deployment runs.
func (w *world) runs(name, image string) {
	w.t.Helper()
	if got := w.Live(name).Spec.Template.Spec.Containers[0].Image; got != image {
		w.t.Errorf("%s runs %s, want %s", name, got, image)
	}
}

// reads checks how a plan ended.
func (w *world) reads(p *v1alpha1.RemediationPlan, want string) {
	w.t.Helper()
	var states []string
	for i := range p.Status.Steps {
		states = append(states, strings.TrimSpace(string(p.Status.Steps[i].State)+" "+string(p.Status.Steps[i].Reason)))
	}
	if got := string(p.Status.Phase) + ": " + strings.Join(states, ", "); got != want {
		w.t.Errorf("the plan is %s, want %s", remediation.Describe(p), want)
	}
}

// until waits until an executor has made a write, or was about to.
func (e *executor) until(write string) {
	e.t.Helper()
	poll.True(e.t, patience, "it comes to "+write, func() bool { return slices.Contains(e.writes(), write) })
}

// stopped waits until a failpoint has stopped the executor.
func (e *executor) stopped() {
	e.t.Helper()
	poll.Until(e.t, patience, "it is stopped", func() error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.PID()))
		if err != nil {
			return err
		}
		if _, state, _ := strings.Cut(string(raw), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("its state is %.1s; it wrote %q", state, e.writes())
		}
		return nil
	})
}

// goesOn lets a stopped executor go on.
func (e *executor) goesOn() {
	e.t.Helper()
	if err := e.Signal(syscall.SIGCONT); err != nil {
		e.t.Fatal(err)
	}
}

// refused waits until the API server has refused a write of the executor as outdated.
func (e *executor) refused() {
	e.t.Helper()
	poll.Until(e.t, patience, "a write is refused", func() error {
		n, err := e.Metric(e.t.Context(), "plumbline_api_requests_total", `code="409"`)
		if err == nil && n < 1 {
			err = fmt.Errorf("%v were", n)
		}
		return err
	})
}

// ends waits until an executor has ended with an error.
func (e *executor) ends() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	how, err := e.Exited(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	if how == nil {
		e.t.Error("it ended as if all were well")
	}
}

// is checks what somebody said.
func is(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// ready waits until an executor has read everything.
func (w *world) ready(e *executor) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx(), patience)
	defer cancel()
	w.Must(e.Ready(ctx))
}

// patient is Eventually with a limit of its own.
func (w *world) patient(limit time.Duration, what string, check func() error) {
	w.t.Helper()
	poll.Until(w.t, limit, what, check)
}
