// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// The ten writes of the protocol, in their order.
var tenWrites = []string{
	"claim web", granted, grantedToo, intended, effect, applied, verified, settledToo, stepRecord, succeededPlan,
}

// ofTakeovers is the table of the ten writes: who carries on, and what became of Redis.
var ofTakeovers = table{"takeovers", []string{
	"Killed", "restarted, with Redis", "restarted, Redis died too", "a standby takes over, with Redis", "a standby takes over, Redis died too",
}}

// takeover is one way to carry on.
type takeover struct {
	standby, redisDies bool
}

// column of the table.
func (o takeover) column() int {
	n := 1
	if o.redisDies {
		n++
	}
	if o.standby {
		n += 2
	}
	return n
}

func (o takeover) String() string { return ofTakeovers.columns[o.column()] }

// attempt is one crash, and one way to carry on after it.
type attempt struct {
	crash
	takeover
}

func (a attempt) String() string { return a.crash.String() + ", " + a.takeover.String() }

// attempts are all ways at both sides of each write; or a quarter of them, in which any
// two of write, side, who carries on and what becomes of Redis occur together.
func attempts(rotations ...int) (all []attempt) {
	for _, r := range rotations {
		for _, c := range rotation.Pairs(len(tenWrites), r) {
			when := map[bool]string{false: "before", true: "after"}[c.Second]
			all = append(all, attempt{crash{when, tenWrites[c.Thing]}, takeover{c.FirstOn, c.SecondOn}})
		}
	}
	return all
}

// chosen are the attempts of this run.
func chosen(t *testing.T) []attempt {
	t.Helper()
	if long() {
		return attempts(0, 1, 2, 3)
	}
	r, err := rotation.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a quarter of all: %s=%d has the same again, PLUMBLINE_FAULTS=long has all", rotation.Variable, r)
	return attempts(r)
}

// TestWhoeverCarriesOnEndsWhereAnUndisturbedOneDoes kills the executor at each of the
// ten writes. It is started again, or a standby that has waited for its lease carries
// on; Redis has a mirror of the ledgers, and goes on or dies at the same moment.
func TestWhoeverCarriesOnEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	var rows []string
	for _, write := range tenWrites {
		rows = append(rows, "before "+write, "after "+write)
	}
	ofTakeovers.has(t, rows...)
	all := chosen(t)
	var worlds []*world
	for i, a := range all {
		if i%batch == 0 {
			worlds = shared.prepared(t, min(batch, len(all)-i))
		}
		t.Run(a.String(), func(t *testing.T) {
			w, f := worlds[i%batch].Within(t), newFiles(t)
			defer w.Forget()
			first, second := carriedOn(t, w, f, a)
			ofTakeovers.says(t, a.crash.String(), a.takeover.column(), beginsWith(a.crash, first.writes(), second.writes()))
		})
	}
}

// carriedOn has one executor die and another one carry its plan on.
func carriedOn(t *testing.T, w *world, f *files, a attempt) (first, second *executor) {
	t.Helper()
	r := startRedis(t)
	flags := []string{"--redis-address=" + r.Socket, "--redis-timeout=10s"} // what a busy machine makes slow is not the fault
	if a.standby {
		first, second = shared.pair(t, f, a.fault(), flags...)
	} else {
		first = shared.start(t, f, a.fault(), flags...)
	}
	plan := w.planned()
	first.killedAt(a.crash)
	if a.redisDies {
		r.Kill()
	} else if a.write != tenWrites[0] { // nobody has asked for a place before the claim
		w.mirrored(r)
	}
	if a.standby {
		shared.shortenLease(t)
	} else {
		second = shared.start(t, f, "", flags...)
	}
	w.succeeded(plan, f)
	w.Must(second.Stop()) // a standby gives the lease back, so that the next one leads at once
	return first, second
}

// oftenAsked is the fault by which a standby asks for the lease every one to three
// seconds, instead of two to five. Once it leads, it may be held up for six seconds.
const oftenAsked = "lease:9s"

// pair starts an executor with a fault, which leads, and a standby. A busy machine ends
// no leader: its lease is as long as elsewhere, see [cluster.shortenLease].
func (c *cluster) pair(t *testing.T, f *files, fault string, flags ...string) (leader, standby *executor) {
	t.Helper()
	flags = append([]string{"--leader-elect=true"}, flags...)
	leader = c.start(t, f, fault, flags...)
	poll.True(t, patience, "it leads", func() bool {
		leads, err := leader.Metric(t.Context(), "plumbline_executor_leader")
		return err == nil && leads == 1
	})
	standby = c.start(t, f, oftenAsked, flags...)
	return leader, standby
}

// shortenLease has the lease of a leader that is dead or stopped hold a standby up for a
// second instead of fifteen: a candidate waits for as long as the lease itself says.
func (c *cluster) shortenLease(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-executor"}}
	err := c.Admin.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":1}}`)))
	if err != nil {
		t.Fatal(err)
	}
}

// mirrored checks that there was a mirror at all.
func (w *world) mirrored(r *server.Redis) {
	w.t.Helper()
	c := r.Client()
	defer func() { _ = c.Close() }() // only read
	n, err := c.DBSize(w.t.Context()).Result()
	w.Must(err)
	if n == 0 {
		w.t.Error("Redis has no key: nothing was mirrored")
	}
}
