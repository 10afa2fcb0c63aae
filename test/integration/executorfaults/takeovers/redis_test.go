// SPDX-License-Identifier: Apache-2.0

//go:build integration

package takeovers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// redisFault is what becomes of Redis between two steps of a plan.
type redisFault struct {
	// early happens when the first step is verified, and before the mirror is told so.
	early func(*redisBeside)
	// late happens before the second step asks for its place.
	late func(*redisBeside)
	// says is what the executor finds when it asks; empty: an answer.
	says redisguard.Reason
}

var redisFaults = map[string]redisFault{
	"goes on": {says: ""},
	"is slow": {says: redisguard.ReasonSlow, late: func(b *redisBeside) { b.way.Set(faultproxy.Fault{Delay: 5 * time.Second}) }},
	"hangs":   {says: redisguard.ReasonSlow, late: func(b *redisBeside) { b.way.Set(faultproxy.Fault{Hold: true}) }},
	"is flushed": {says: redisguard.ReasonMissing, late: func(b *redisBeside) {
		c := b.primary.Client()
		defer func() { _ = c.Close() }() // it has answered
		b.w.Must(c.FlushAll(b.w.Ctx()).Err())
		b.w.Must(c.ScriptFlush(b.w.Ctx()).Err())
	}},
	"is killed": {says: redisguard.ReasonUnreachable, late: func(b *redisBeside) { b.primary.Kill() }},
	"is killed and comes back empty": {says: redisguard.ReasonMissing, late: func(b *redisBeside) {
		b.primary.Kill()
		b.primary = b.start(b.directory)
		b.way.Cut()
	}},
	"fails over to a replica that is behind": {
		says:  redisguard.ReasonBehind,
		early: func(b *redisBeside) { b.replicated() },
		late:  func(b *redisBeside) { b.failOver() },
	},
}

// redisCase is one fault beside an executor that goes on, or beside one that dies.
type redisCase struct {
	fault string
	dies  bool
}

// redisCases are all faults, each beside one of the two executors; successive rotations
// choose the other one. A long run has both.
func redisCases(t *testing.T) []redisCase {
	t.Helper()
	r := chosenRotation(t)
	var all []redisCase
	for i, name := range slices.Sorted(maps.Keys(redisFaults)) {
		if dies := (i+r)%2 == 0; failpoint.Long() {
			all = append(all, redisCase{name, false}, redisCase{name, true})
		} else {
			all = append(all, redisCase{name, dies})
		}
	}
	return all
}

// TestRedisBesideAnExecutor breaks Redis while a plan is under way, before the second
// step asks for a place: beside an executor that goes on, and beside one that dies
// when the cluster's ledger has granted the place. The mirror may refuse and never
// grants, so that the plan ends as one without Redis.
func TestRedisBesideAnExecutor(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	cases := redisCases(t)
	worlds := shared.MakeWorlds(t, len(cases))
	for i, c := range cases {
		t.Run(c.fault+map[bool]string{true: ", and the executor dies"}[c.dies], func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			besideRedis(t, w, f, redisFaults[c.fault], c.dies)
		})
	}
}

func besideRedis(t *testing.T, w *failpoint.World, f *failpoint.Files, fault redisFault, dies bool) {
	t.Helper()
	b := newRedisBeside(t, w)
	patient := "--redis-timeout=10s" // what a busy machine makes slow is not the fault
	if fault.says == redisguard.ReasonSlow {
		patient = "--redis-timeout=1s" // each call that fails costs so much
	}
	flags := []string{"--redis-address=" + b.way.Address(), patient}
	// All that the first step tells the ledgers lies between the first point and the second.
	second := "stop:after:let go of web"
	if dies {
		second = "kill:after:" + failpoint.GrantedNext
	}
	plan := w.MakePlan()
	e := shared.Start(t, f, "stop:after:"+failpoint.Verified+";"+second, flags...)
	e.UntilStopped()
	w.CheckMirrored(b.primary)
	if fault.early != nil {
		fault.early(b)
	}
	e.GoOn()
	if dies {
		e.UntilKilledAt(failpoint.After(failpoint.GrantedNext))
	} else {
		e.UntilWrite("let go of web")
		e.UntilStopped()
	}
	if fault.late != nil {
		fault.late(b)
	}
	if dies {
		e = shared.Start(t, f, "", flags...)
	} else {
		e.GoOn()
	}
	w.UntilSucceeded(plan, f)
	b.heard(e, fault.says, dies)
}

// redisBeside is a Redis that an executor reaches through a proxy, and that a replica
// follows through another one.
type redisBeside struct {
	w                *failpoint.World
	t                *testing.T
	directory        string
	address          string
	primary, replica *server.Redis
	way, between     *faultproxy.Proxy
}

func newRedisBeside(t *testing.T, w *failpoint.World) *redisBeside {
	t.Helper()
	b := &redisBeside{w: w, t: t, directory: failpoint.MakeShortDirectory(t)}
	port := freeport.For(t)
	b.address = "127.0.0.1:" + strconv.Itoa(port)
	b.primary = b.start(b.directory, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0")
	b.way = b.proxy("unix", b.primary.Socket)
	b.between = b.proxy("tcp", b.address)
	return b
}

func (b *redisBeside) start(directory string, options ...string) *server.Redis {
	b.t.Helper()
	r, err := server.StartRedis(b.w.Ctx(), directory, options...)
	b.w.Must(err)
	b.t.Cleanup(r.Kill)
	return r
}

func (b *redisBeside) proxy(network, address string) *faultproxy.Proxy {
	b.t.Helper()
	p, err := faultproxy.Start(network, address)
	b.w.Must(err)
	b.t.Cleanup(func() { b.w.Must(p.Close()) })
	return p
}

// replicated has a replica that knows what the primary knows now, and learns nothing
// more: the place of the first step is taken in it for good.
func (b *redisBeside) replicated() {
	b.t.Helper()
	b.replica = b.start(failpoint.MakeShortDirectory(b.t), "--replicaof", strings.Replace(b.between.Address(), ":", " ", 1))
	poll.Until(b.t, failpoint.Patience, "the replica has the places of the first step", func() error {
		if taken := b.taken(b.replica); taken != 2 {
			return fmt.Errorf("%d are taken", taken)
		}
		return nil
	})
	b.between.Set(faultproxy.Fault{Hold: true})
}

// failOver has the replica be the one that executors find.
func (b *redisBeside) failOver() {
	b.t.Helper()
	if taken := b.taken(b.primary); taken == 2 {
		b.t.Error("the replica is behind in nothing that matters: the primary has the places of the first step too")
	}
	b.primary.Kill()
	c := b.replica.Client()
	defer func() { _ = c.Close() }() // it has answered
	b.w.Must(c.Do(b.w.Ctx(), "REPLICAOF", "NO", "ONE").Err())
	if taken := b.taken(b.replica); taken != 2 {
		b.t.Errorf("in the replica %d places are taken", taken)
	}
	b.way.Redirect("unix", b.replica.Socket)
	b.way.Cut()
}

// taken counts the places that the copies in a Redis hold for steps that have not
// ended.
func (b *redisBeside) taken(r *server.Redis) (n int) {
	b.t.Helper()
	c := r.Client()
	defer func() { _ = c.Close() }() // only read
	keys, err := c.Keys(b.w.Ctx(), "*:mirror:*").Result()
	b.w.Must(err)
	for _, key := range keys {
		open, err := c.HGet(b.w.Ctx(), key, "open").Int()
		b.w.Must(err)
		n += open
	}
	return n
}

// heard checks what Redis said to an executor, or to the second one, when it was asked
// for a place.
func (b *redisBeside) heard(e *failpoint.Executor, says redisguard.Reason, second bool) {
	b.t.Helper()
	of := func(metric string, labels ...string) float64 {
		n, err := e.Metric(b.w.Ctx(), "plumbline_remediation_mirror_"+metric+"_total", labels...)
		b.w.Must(err)
		return n
	}
	heard := map[redisguard.Reason]float64{}
	for _, fault := range redisFaults {
		if n := of("answers", fmt.Sprintf("reason=%q", fault.says)); n > 0 {
			heard[fault.says] = n
		}
	}
	if !second {
		// The first question about each of the two ledgers misses a copy, which the place of the first step puts.
		heard[redisguard.ReasonMissing] -= min(heard[redisguard.ReasonMissing], 2)
	}
	maps.DeleteFunc(heard, func(_ redisguard.Reason, n float64) bool { return n == 0 })
	if heard[says] == 0 {
		b.t.Errorf("Redis was not heard to say %q; it said %v", says, heard)
	}
	if says == "" && len(heard) > 1 {
		b.t.Errorf("Redis was well, and said %v", heard)
	}
	// A refusal that the ledger would have given too is none of a copy that is behind.
	if n, err := e.Metric(b.w.Ctx(), "plumbline_remediation_mirror_contradictions_total"); err != nil || n > 0 {
		b.t.Errorf("%v answers contradict the ledger, %v", n, err)
	}
}
