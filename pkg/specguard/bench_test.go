// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// benchBody is a Deployment of about 20 KiB.
func benchBody() string {
	var env strings.Builder
	for i := range 190 {
		fmt.Fprintf(&env, `,{"name":"SETTING_%03d","value":"%s"}`, i, strings.Repeat("v", 60))
	}
	return strings.Replace(testDeployment, `"value":"live"}`, `"value":"live"}`+env.String(), 1)
}

func benchWorld(b *testing.B) *world {
	w := newWorld(b)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, benchBody())
	w.observe(false, false)
	return w
}

// BenchmarkStepInSync is a resync of an object that did not change, its
// authorized body not loaded: the case that 10k objects take at a start.
func BenchmarkStepInSync(b *testing.B) {
	w := benchWorld(b)
	st := w.state
	st.Body = nil
	in := Input{State: st, Rules: w.rules, Now: w.now, Config: w.config,
		Observation: Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, SeenAt: w.now}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Step(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStepForeignWrite is one write seen by the watch.
func BenchmarkStepForeignWrite(b *testing.B) {
	w := benchWorld(b)
	before := w.live
	w.update(write{user: "alice", changes: []diff.Change{change(b, "/spec/paused", "false", "true")}})
	in := Input{State: w.state, Rules: w.rules, Now: w.now, Config: w.config,
		Observation: Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, Prev: &before, SeenAt: w.now}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Step(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRulesAndJudge is what admission adds to hashing and comparing.
func BenchmarkRulesAndJudge(b *testing.B) {
	w := benchWorld(b)
	set := NewGuardSet(w.guards, nil, System{})
	r := Review{Operation: OperationUpdate, Identity: Identity{User: "alice"}, Changes: []diff.Change{change(b, "/spec/paused", "false", "true")}}
	gvk := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	b.ReportAllocs()
	for b.Loop() {
		if v := Judge(set.Rules(Query{Namespace: "shop", GVK: gvk}), r); v.Drift != 1 {
			b.Fatal(v)
		}
	}
}
