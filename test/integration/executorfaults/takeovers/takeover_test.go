// SPDX-License-Identifier: Apache-2.0

//go:build integration

package takeovers

import (
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// The ten writes of the protocol, in their order.
var tenWrites = []string{
	failpoint.Granted, failpoint.GrantedToo, failpoint.Claimed, failpoint.Intended, failpoint.Effect,
	failpoint.Applied, failpoint.Verified, failpoint.StepRecord, failpoint.SettledToo, failpoint.SucceededPlan,
}

// ofTakeovers is the table of the ten writes: who carries on, and what became of Redis.
var ofTakeovers = failpoint.Table{Name: "takeovers", Columns: []string{
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

func (o takeover) String() string { return ofTakeovers.Columns[o.column()] }

// attempt is one crash, and one way to carry on after it.
type attempt struct {
	failpoint.Crash
	takeover
}

func (a attempt) String() string { return a.Crash.String() + ", " + a.takeover.String() }

// attempts are a quarter of all cases for each rotation. In each quarter any two values
// of write, side, successor and Redis occur together.
func attempts(rotations ...int) (all []attempt) {
	for _, r := range rotations {
		for _, c := range rotation.Pairs(len(tenWrites), r) {
			point := failpoint.Before(tenWrites[c.Thing])
			if c.Second {
				point = failpoint.After(tenWrites[c.Thing])
			}
			all = append(all, attempt{point, takeover{c.FirstOn, c.SecondOn}})
		}
	}
	return all
}

// chosen are the attempts of this run.
func chosen(t *testing.T) []attempt {
	t.Helper()
	if failpoint.Long() {
		return attempts(0, 1, 2, 3)
	}
	return attempts(chosenRotation(t))
}

// chosenRotation reads the rotation of this run.
func chosenRotation(t *testing.T) int {
	t.Helper()
	r, err := rotation.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if !failpoint.Long() {
		t.Logf("a part of all: %s=%d has the same again, PLUMBLINE_FAULTS=long has all", rotation.Variable, r)
	}
	return r
}

// TestWhoeverCarriesOnEndsWhereAnUndisturbedOneDoes kills the executor at each of the
// ten writes. It is started again, or a standby that has waited for its lease carries
// on; Redis has a mirror of the ledgers, and goes on or dies at the same moment.
func TestWhoeverCarriesOnEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	var rows []string
	for _, write := range tenWrites {
		rows = append(rows, "before "+write, "after "+write)
	}
	ofTakeovers.CheckRows(t, rows...)
	all := chosen(t)
	var worlds []*failpoint.World
	for i, a := range all {
		if i%failpoint.Batch == 0 {
			worlds = shared.MakeWorlds(t, min(failpoint.Batch, len(all)-i))
		}
		t.Run(a.String(), func(t *testing.T) {
			w, f := worlds[i%failpoint.Batch].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			first, second := carriedOn(t, w, f, a)
			ofTakeovers.CheckCell(t, a.Crash.String(), a.column(), failpoint.FirstWrite(a.Crash, first.Writes(), second.Writes()))
		})
	}
}

// carriedOn has one executor die and another one carry its plan on.
func carriedOn(t *testing.T, w *failpoint.World, f *failpoint.Files, a attempt) (first, second *failpoint.Executor) {
	t.Helper()
	r := failpoint.StartRedis(t)
	flags := []string{"--redis-address=" + r.Socket, "--redis-timeout=10s"} // what a busy machine makes slow is not the fault
	if a.standby {
		first, second = shared.StartPair(t, f, a.Fault(), flags...)
	} else {
		first = shared.Start(t, f, a.Fault(), flags...)
	}
	plan := w.MakePlan()
	first.UntilKilledAt(a.Crash)
	if a.redisDies {
		r.Kill()
	} else if a.Write != tenWrites[0] { // nobody has asked for a place before the claim
		w.CheckMirrored(r)
	}
	if a.standby {
		shared.ShortenLease(t)
	} else {
		second = shared.Start(t, f, "", flags...)
	}
	w.UntilSucceeded(plan, f)
	w.Must(second.Stop()) // a standby gives the lease back, so that the next one leads at once
	return first, second
}
