// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// serve makes the API server serve other content, without a write.
func (w *world) serve(changes string) {
	w.t.Helper()
	generation, version, managers, writer := w.generation, w.rv, w.live.Managers, w.live.Writer
	w.update(write{user: "nobody", record: "no", changes: parseChanges(w.t, w.live.Body, w.gvk, changes)})
	w.generation, w.rv = generation, version
	w.live.Generation, w.live.Managers, w.live.Writer = generation, managers, writer
	w.live.ResourceVersion = strconv.Itoa(version)
}

// reread observes what the watch tells after a list: the version before and the version
// now have one resourceVersion.
func (w *world) reread() {
	w.t.Helper()
	live := w.live
	w.step(Present{Version: live, UID: w.uidText(), CreatedAt: w.createdAt, Prev: w.seen, SeenAt: w.now}, nil)
	w.seen = &live
}

// touchStatus writes the status; the watch has not delivered that yet.
func (w *world) touchStatus() {
	w.rv++
	w.live.ResourceVersion = strconv.Itoa(w.rv)
}

const newDefault = `/spec/template/spec/hostUsers = true`

// H7 of the guard's review: a new default of Kubernetes was drift of each object.
func TestANewDefaultOfTheAPIServerIsNoDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(*world)
		want string
	}{
		"in a running assessor": {
			func(w *world) { w.serve(newDefault); w.reread() },
			"InSync, revision 2 Created by system:apiserver, hash ==\n  effect: store revision 2\n  Normal ServerDefaultAuthorized: ",
		},
		"in a restarted assessor": {
			func(w *world) { w.serve(newDefault); w.restart(); w.observe(true, false) },
			"InSync, revision 2 Created by system:apiserver, hash ==\n  effect: store revision 2\n  Normal ServerDefaultAuthorized: ",
		},
		"after writes of the status that were not remembered": {
			func(w *world) { w.statusWrite(); w.serve(newDefault); w.restart(); w.observe(true, false) },
			"InSync, revision 2 Created by system:apiserver, hash ==\n  effect: store revision 2\n  Normal ServerDefaultAuthorized: ",
		},
		"in a running assessor that learns of it by a write of the status": {
			func(w *world) { w.serve(newDefault); w.touchStatus(); w.observe(false, false) },
			"InSync, revision 2 Created by system:apiserver, hash ==\n  effect: store revision 2\n  Normal ServerDefaultAuthorized: ",
		},
		"of a custom kind whose status was written meanwhile, nothing is proven, and no writer is named": {
			func(w *world) {
				w.kind("example.org/v1", "Widget")
				w.create(write{user: user("ci")}, `{"spec":{"size":1}}`)
				w.observe(false, false)
				w.report()
				w.statusWrite()
				w.serve(`/spec/tls = "strict"`)
				w.restart()
				w.observe(true, false)
			},
			"Drifted, revision 1 Created by " + user("ci") + ", hash !=\n  finding /spec/tls Added Unexpected/Other: - -> \"strict\" by ? (Unknown, None)",
		},
		"a field that is not known any more is dropped": {
			func(w *world) {
				w.serve(`/spec/template/spec/containers/[name=app]/resources gone`)
				w.restart()
				w.observe(true, false)
			},
			"InSync, revision 2 Created by system:apiserver, hash ==\n  effect: store revision 2\n  Normal ServerDefaultAuthorized: ",
		},
		"beside drift, which stays": {
			func(w *world) {
				w.by("mallory", `/spec/replicas = 9`)
				w.serve(newDefault)
				w.restart()
				w.report()
				w.observe(true, false)
			},
			"Drifted, revision 2 Created by system:apiserver, hash !=\n  finding /spec/replicas Changed Scale/Scale: 3 -> 9 by " + user("mallory") + " (Untrusted, WriterStamp)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guard("shop", testGuardSpec(), w.now.Add(-1))
			w.create(write{user: user("ci")}, testDeployment)
			w.observe(false, false)
			w.report()
			tc.play(w)
			if got := w.report(); !strings.HasPrefix(got, tc.want) {
				t.Error(cmp.Diff(tc.want, got))
			}
		})
	}
}

// A default inside another writer's container must not make the container authorized.
func TestANewDefaultWithinDriftAuthorizesNothing(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now.Add(-1))
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.by("mallory", `/spec/template/spec/containers/[name=evil] = {"name":"evil","image":"evil:1"}`)
	w.serve(`/spec/template/spec/containers/[name=evil]/restartPolicy = "Always"`)
	w.restart()
	w.observe(true, false)
	if w.state.Authorized.Number != 1 || w.state.Drift != v1alpha1.StateDrifted || len(w.state.Findings) != 1 || w.state.Findings[0].Actor.User != user("mallory") {
		t.Error(w.report())
	}
}

// A resync shows the version that is there as the version before. If that version was
// not judged, writes lie between it and the state.
func TestAVersionThatWasNotJudgedIsNoProofOfADefault(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now.Add(-1))
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.update(write{user: user("mallory"), changes: parseChanges(t, w.live.Body, w.gvk, newDefault)})
	seen := w.live
	w.seen = &seen
	w.reread()
	if w.state.Authorized.Number != 1 || w.state.Drift != v1alpha1.StateDrifted {
		t.Error(w.report())
	}
}

// The generation proves nothing where a client may choose the generation.
func TestAnEqualGenerationOfAKindThatDoesNotCountIsNoProof(t *testing.T) {
	w := newWorld(t)
	w.kind("v1", "Service")
	w.create(write{user: user("ci")}, `{"spec":{"type":"ClusterIP"}}`)
	w.live.Generation, w.generation = 5, 5
	w.observe(false, false)
	w.restart()
	w.update(write{user: user("mallory"), record: "no", changes: parseChanges(t, w.live.Body, w.gvk, `/spec/type = "NodePort"`)})
	w.live.Generation, w.generation = 5, 5
	w.observe(true, false)
	if w.state.Authorized.Number != 1 || w.state.Drift != v1alpha1.StateDrifted {
		t.Error(w.report())
	}
}

func TestANewDefaultOfAnUnexpectedObjectBlamesNoWriter(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now.Add(-1))
	w.create(write{user: user("mallory")}, testDeployment)
	w.observe(false, false)
	w.live.Writer = user("ci") // wrote something that is not compared
	w.report()
	w.serve(newDefault)
	w.reread()
	for _, e := range w.effects {
		if event, ok := e.(Event); ok {
			t.Errorf("event %s: %s", event.Reason, event.Message)
		}
	}
}
