// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// cost is what one plan asked of the API server in an undisturbed world.
type cost struct {
	// requests of the executor, by verb and resource, before the write of its target, between
	// that write and the end of the step, and afterwards.
	before, waiting, after map[string]int
	// writes are those that the API server stored, in order.
	writes []string
	took   time.Duration
}

// costOf carries a plan out, with one executor and nothing that disturbs it.
func costOf(t *testing.T, batches [][]int32, others map[string]func(*World) func(*schedule.Life)) cost {
	t.Helper()
	Prepare()
	var c cost
	synctest.Test(t, func(t *testing.T) {
		s := schedule.New(1)
		w := newWorld(s, scenario{
			action: v1alpha1.ActionReconcile, kind: &deployments, batches: batches, still: 1 << 30, deadline: 24 * time.Hour, redis: absent,
			limits: v1alpha1.RemediationSafety{MaxConcurrent: 1, MaxPerHour: 10, MaxPerDay: 20, MaxTargets: 10, MaxTargetPercent: 25, MinHealthyPercent: 75},
		}, Mutant{})
		w.calm.Store(true)
		var written, ended time.Time
		w.Server.Watch(func(commit apiserver.Commit) {
			if commit.User != Executor {
				return
			}
			if ofTarget(commit) {
				written = commit.At
			}
			if line := describe(commit); line != "" {
				c.writes = append(c.writes, line)
				if strings.HasPrefix(line, "plan Running: Verified") || strings.HasPrefix(line, "plan Running: Failed") {
					ended = commit.At
				}
			}
		})
		s.Spawn("executor-a", w.executor(0, jump{}))
		for _, name := range slices.Sorted(maps.Keys(others)) {
			s.Spawn(name, others[name](w))
		}
		if !s.Run(calmMessages, w.ended) {
			t.Error("the plan does not end")
		}
		c.took = time.Since(w.epoch)
		c.before, c.waiting, c.after = map[string]int{}, map[string]int{}, map[string]int{}
		for _, line := range s.Trace() {
			c.count(line, written.Sub(w.midnight), ended.Sub(w.midnight))
		}
		s.Stop()
	})
	return c
}

// count counts a request of the executor to the API server.
func (c *cost) count(line string, written, ended time.Duration) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[1], "executor") || !strings.HasPrefix(fields[3], "/") {
		return
	}
	now, err := time.ParseDuration(fields[0])
	if err != nil {
		panic(err)
	}
	in := c.after
	switch {
	case now < written: // the write itself is not among them
		in = c.before
	case now < ended:
		in = c.waiting
	}
	in[asked(fields[2], fields[3])]++
}

// asked is "GET deployments" of a request for one object, and "LIST deployments" of one for all.
func asked(verb, address string) string {
	address, _, _ = strings.Cut(address, "?")
	path := strings.Split(strings.Trim(address, "/"), "/")
	root := 3 // apis, group, version
	if path[0] == "api" {
		root = 2
	}
	if path = path[root:]; len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if verb == http.MethodGet && len(path) == 1 {
		verb = "LIST"
	}
	return verb + " " + path[0]
}

func sum(counts map[string]int, prefix string) int {
	n := 0
	for what, times := range counts {
		if strings.HasPrefix(what, prefix) {
			n += times
		}
	}
	return n
}

// describe says in words what the executor has written.
func describe(c apiserver.Commit) string {
	switch c.Resource.Resource {
	case "remediationplans":
		status := &typed[v1alpha1.RemediationPlan](c.After).Status
		line := "plan " + string(status.Phase) + ":"
		for i := range status.Steps {
			step := &status.Steps[i]
			line += " " + string(step.State)
			if step.HealthyTime != nil && step.State == v1alpha1.StepApplied {
				line += " healthy"
			}
			if step.Settled == v1alpha1.Enabled {
				line += " settled"
			}
			if step.Evidence != nil {
				line += " recorded"
			}
		}
		if announced(typed[v1alpha1.RemediationPlan](c.After)) {
			line += ", announced"
		}
		return line
	case "remediationledgers":
		if c.Subresource == "" || c.Before["status"] == nil {
			return ""
		}
		l := typed[v1alpha1.RemediationLedger](c.After)
		open, records := 0, int64(0)
		for i := range l.Status.Entries {
			if l.Status.Entries[i].CompletionTime == nil {
				open++
			}
		}
		for _, chain := range l.Status.Chains {
			records = max(records, chain.Sequence)
		}
		return fmt.Sprintf("ledger %s: %d granted, %d open, %d records", l.Name, len(l.Status.Entries), open, records)
	case "baselines":
		return fmt.Sprintf("claim %q", typed[v1alpha1.Baseline](c.After).Status.PlanName)
	case "environments":
		return "" // once for each Environment
	}
	return c.Resource.Resource + " " + c.Name
}

// D24 of the review of remediation: a plan that waited ten minutes for health made 3,975
// requests, a list of all namespaces every two seconds among them.
func TestAPlanThatWaitsTenMinutesForHealthAsksForLittle(t *testing.T) {
	c := costOf(t, [][]int32{{0}}, nil)
	t.Logf("before its write %v, while it waits %v, afterwards %v", c.before, c.waiting, c.after)
	if c.took < 10*time.Minute {
		t.Errorf("it waited for %s", c.took)
	}
	c.lists(t)
	// Three every 30 seconds, those of four statuses, and the look at old places once a minute.
	if n := sum(c.waiting, ""); n > 110 {
		t.Errorf("it made %d requests while it waited", n)
	}
}

// A target that changes ten times a second for a minute is looked at once a second.
func TestAPlanLooksAtABusyTargetOnceASecond(t *testing.T) {
	const busy = time.Minute
	c := costOf(t, [][]int32{{0}}, map[string]func(*World) func(*schedule.Life){
		"busy": func(w *World) func(*schedule.Life) {
			return func(l *schedule.Life) {
				p := w.person(l, "bot")
				l.Await(w.watch(func(c apiserver.Commit) bool { return c.User == Executor && ofTarget(c) }), time.Hour)
				for begin := time.Now(); time.Since(begin) < busy; l.Sleep(100 * time.Millisecond) {
					p.churns()
				}
				w.controller(l)
			}
		},
	})
	t.Logf("while it waits %v", c.waiting)
	looks := c.waiting["GET deployments"]
	if most := int((busy + 30*time.Second) / time.Second); looks > most || looks < 30 {
		t.Errorf("it looked %d times in about a minute", looks)
	}
	c.lists(t)
}

// lists fails if a look of the plan listed something. The ledgers are listed once a minute,
// whatever plans there are.
func (c *cost) lists(t *testing.T) {
	t.Helper()
	if n := sum(c.waiting, "LIST") - c.waiting["LIST remediationledgers"]; n > 0 {
		t.Errorf("it made %d lists while it waited", n)
	}
}

// The writes to etcd that one repaired object costs, without Events and without those that
// the first plan of an Environment needs once. docs/reference/benchmarks.md has them too.
func TestTheWritesOfOneRepairedObject(t *testing.T) {
	c := costOf(t, [][]int32{{0}}, map[string]func(*World) func(*schedule.Life){
		"deployment-controller": func(w *World) func(*schedule.Life) { return w.controller },
	})
	want := []string{
		"plan Created: Planned",
		"ledger plumbline-cluster: 1 granted, 1 open, 0 records",
		"ledger production: 1 granted, 1 open, 1 records",
		`claim "first"`,
		"plan Running: Intent",
		"deployments web",
		"plan Running: Applied",
		"plan Running: Applied healthy",
		"plan Running: Verified",
		"ledger production: 1 granted, 0 open, 3 records",
		"ledger plumbline-cluster: 1 granted, 0 open, 0 records",
		`claim ""`,
		"plan Succeeded: Verified settled recorded",
		"plan Succeeded: Verified settled recorded, announced",
	}
	if diff := cmp.Diff(want, c.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// What the executor asks before the write of its target is most of what a repair takes. Some of
// it is for the first plan of an Environment alone: to make and begin its ledgers.
func TestTheRequestsBeforeTheWriteOfOneObject(t *testing.T) {
	c := costOf(t, [][]int32{{0}}, map[string]func(*World) func(*schedule.Life){
		"deployment-controller": func(w *World) func(*schedule.Life) { return w.controller },
	})
	want := map[string]int{
		"GET baselinerevisions": 1, "GET baselines": 2, "GET deployments": 1, "GET environments": 3, "GET remediationledgers": 6,
		"GET remediationplans": 2, "GET remediationpolicies": 3,
		"LIST clusterspecguards": 2, "LIST environments": 3, "LIST guarddefaults": 2, "LIST namespaces": 2, "LIST poddisruptionbudgets": 2, "LIST specguardexceptions": 2, "LIST specguards": 2,
		"POST remediationledgers": 2, "POST selfsubjectaccessreviews": 2, "POST subjectaccessreviews": 1,
		"PATCH environments": 1, "PUT baselines": 1, "PUT deployments": 1, "PUT remediationledgers": 4, "PUT remediationplans": 2,
	}
	if diff := cmp.Diff(want, c.before); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The second object of a plan costs less: its grant keeps the head of the record before it.
func TestTheWritesOfTheSecondObjectOfAPlan(t *testing.T) {
	c := costOf(t, [][]int32{{0}, {1}}, map[string]func(*World) func(*schedule.Life){
		"deployment-controller": func(w *World) func(*schedule.Life) { return w.controller },
	})
	from := slices.Index(c.writes, `claim ""`) + 1
	to := len(c.writes)
	for ; to > from && c.writes[to-1] != `claim ""`; to-- {
	}
	want := []string{
		"ledger plumbline-cluster: 2 granted, 1 open, 0 records",
		"ledger production: 2 granted, 1 open, 2 records",
		`claim "first"`,
		"plan Running: Verified settled recorded Intent",
		"deployments api",
		"plan Running: Verified settled recorded Applied",
		"plan Running: Verified settled recorded Applied healthy",
		"plan Running: Verified settled recorded Verified",
		"ledger production: 2 granted, 0 open, 4 records",
		"ledger plumbline-cluster: 2 granted, 0 open, 0 records",
		`claim ""`,
	}
	if diff := cmp.Diff(want, c.writes[from:to]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
