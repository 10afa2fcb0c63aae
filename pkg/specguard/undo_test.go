// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// M10 of the guard's review: an undo by CI brought back, and authorized, what a tenant
// had written to an old ReplicaSet.
func TestAnUndoToATamperedTemplateAuthorizesNothing(t *testing.T) {
	const (
		second   = imagePath + ` = "registry.example/shop/web:2"`
		first    = imagePath + ` = "registry.example/shop/web:1"`
		tampered = first + "\n" + argsPath + ` = ["serve","--debug"]`
		restart  = `/spec/template/metadata/annotations = {"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}`
	)
	kubectl := func(text string) []undoWrite { return []undoWrite{{by: "ci", manager: "kubectl", text: text}} }
	tests := map[string]struct {
		kind string
		// before the writes under test, CI deploys a second image.
		writes []undoWrite
		change func(*world)
		want   string
	}{
		"an undo to a template that was authorized": {writes: kubectl(first), want: "InSync 3"},
		"an undo to a template that was tampered with": {
			writes: kubectl(tampered), want: "Drifted 2, ci, rollout undo brings back",
		},
		"a write that only removes, by a tool that leaves no trace": {
			writes: kubectl(argsPath + ` gone`), want: "InSync 3",
		},
		"an undo that removes and changes": {
			writes: kubectl(argsPath + " gone\n" + first), want: "Drifted 2, ci, rollout undo brings back",
		},
		"a write that only removes, after a stranger cleared managedFields": {
			writes: kubectl(argsPath + ` gone`), change: clearManagers, want: "Drifted 2, ci, rollout undo may have brought back",
		},
		"the same by apply, which leaves a trace": {
			writes: []undoWrite{{by: "ci", manager: "pipeline", applies: true, text: argsPath + ` gone`}}, want: "InSync 3",
		},
		"an undo to the template of now": {writes: []undoWrite{
			{by: "mallory", manager: "kubectl-edit", text: first}, {by: "ci", manager: "kubectl", text: second},
		}, want: "InSync 2"},
		"an undo to a revision that is not kept": {
			writes: kubectl(first), change: func(w *world) { w.former = nil }, want: "Drifted 2, ci, rollout undo brings back",
		},
		"an undo, with a change elsewhere": {
			writes: kubectl(tampered + "\n" + `/spec/replicas = 9`), want: "Drifted 3, ci, rollout undo brings back",
		},
		"a restart": {writes: []undoWrite{{by: "ci", manager: "kubectl-rollout", text: restart}}, want: "InSync 2"},
		"a restart together with another change": {
			writes: []undoWrite{{by: "ci", manager: "kubectl-rollout", text: restart + "\n" + argsPath + ` = ["serve","--debug"]`}},
			want:   "Drifted 2, ci, rollout undo brings back",
		},
		"a pause": {writes: []undoWrite{{by: "ci", manager: "kubectl-rollout", text: `/spec/paused = true`}}, want: "InSync 3"},
		"the same write by another tool": {
			writes: []undoWrite{{by: "ci", manager: "kubectl-set", text: tampered}}, want: "InSync 3",
		},
		"server-side apply by kubectl": {
			writes: []undoWrite{{by: "ci", manager: "kubectl", applies: true, text: tampered}}, want: "InSync 3",
		},
		"two writes of another tool within a second": {writes: []undoWrite{
			{by: "ci", manager: "kubectl-set", text: imagePath + ` = "registry.example/shop/web:3"`},
			{by: "ci", manager: "kubectl-set", text: imagePath + ` = "registry.example/shop/web:4"`},
		}, want: "InSync 4"},
		"a stranger with that manager": {
			writes: []undoWrite{{by: "mallory", manager: "kubectl", text: tampered}}, want: "Drifted 2, mallory",
		},
		"a write after a stranger's with that manager": {writes: []undoWrite{
			{by: "mallory", manager: "kubectl", text: argsPath + ` = ["serve","--debug"]`},
			{by: "ci", manager: "kubectl-set", text: imagePath + ` = "registry.example/shop/web:3"`},
		}, want: "Drifted 3, mallory"},
		"an undo that the assessor missed": {
			writes: []undoWrite{{by: "ci", manager: "kubectl", text: tampered, missed: true}}, want: "Drifted 2, ci, rollout undo brings back",
		},
		"an honest undo that the assessor missed": {
			writes: []undoWrite{{by: "ci", manager: "kubectl", text: first, missed: true}}, want: "InSync 3",
		},
		"a deployment that the assessor missed": {
			writes: []undoWrite{{by: "ci", manager: "kubectl-set", text: tampered, missed: true}}, want: "InSync 3",
		},
		"an undo after a stranger cleared managedFields": {
			writes: kubectl(tampered), change: clearManagers, want: "Drifted 2, ci, rollout undo may have brought back",
		},
		"an honest undo after a stranger cleared managedFields": {writes: kubectl(first), change: clearManagers, want: "InSync 3"},
		"an undo after a stranger claimed fields below for another tool": {writes: kubectl(tampered), change: func(w *world) {
			w.claim("pipeline", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{".":{},"f:bogus":{}},"f:args":{"f:bogus":{}}}}}}}}`)
		}, want: "Drifted 2, ci, rollout undo brings back"},
		"a deployment beside an old entry of kubectl, where the entries of before were not kept": {
			writes: []undoWrite{{by: "ci", manager: "kubectl-set", text: tampered}}, want: "InSync 3", change: func(w *world) {
				w.claim("kubectl", `{"f:spec":{"f:template":{"f:spec":{"f:dnsPolicy":{}}}}}`)
				seen := *w.seen
				seen.Managers = nil
				w.seen = &seen
			},
		},
		"an undo whose entry the API server merged with old ones": {
			writes: []undoWrite{{by: "ci", manager: "ancient-changes", text: tampered}}, want: "Drifted 2, ci, rollout undo may have brought back",
		},
		"a write without a trace that the API server recorded": {
			writes: []undoWrite{{by: "ci", manager: "kubectl-patch", text: argsPath + ` gone`, authenticated: true}}, want: "InSync 3",
		},
		"the same undo of a DaemonSet":   {kind: "DaemonSet", writes: kubectl(tampered), want: "Drifted 2, ci, rollout undo brings back"},
		"the same undo of a StatefulSet": {kind: "StatefulSet", writes: kubectl(tampered), want: "Drifted 2, ci, rollout undo brings back"},
		"an honest one of a StatefulSet": {kind: "StatefulSet", writes: kubectl(first), want: "InSync 3"},
		"a kind without a history":       {kind: "ReplicaSet", writes: kubectl(tampered), want: "InSync 3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, cmpOr(tc.kind, "Deployment"))
			w.play(undoWrite{by: "ci", manager: "kubectl-set", text: second})
			w.now = w.now.Add(time.Second)
			if tc.change != nil {
				tc.change(w)
			}
			w.effects = nil
			for _, wr := range tc.writes {
				w.play(wr)
			}
			state, why, _ := strings.Cut(tc.want, ", ")
			if got := w.standing(); !strings.HasPrefix(strings.Replace(got, ", revision", "", 1), state) {
				t.Errorf("it is %s, want %s\n%s", got, state, w.report())
			}
			by, why, _ := strings.Cut(why, ", ")
			for _, f := range w.state.Findings {
				if f.Actor.User != user(by) {
					t.Errorf("the finding at %s names %s, want %s", f.Path, f.Actor.User, by)
				}
			}
			withheld := slices.ContainsFunc(w.effects, func(e Effect) bool {
				event, ok := e.(Event)
				return ok && event.Reason == ReasonWithheld && strings.Contains(event.Message, why)
			})
			if withheld != (why != "") {
				t.Errorf("an event Withheld with %q: %t\n%s", why, withheld, w.report())
			}
		})
	}
}

// undoWrite is a write through the main resource.
type undoWrite struct {
	by, manager, text string
	applies           bool
	authenticated     bool
	missed            bool // the assessor restarts
}

func newUndoWorld(t testing.TB, kind string) *world {
	w := newWorld(t)
	w.gvk = canon.ParseGVK("apps/v1", kind)
	w.state.Target.Kind = kind
	spec := testGuardSpec()
	spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: kind}}
	w.guard("shop", spec, w.now)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	return w
}

func (w *world) play(wr undoWrite) {
	w.t.Helper()
	w.update(write{
		user: user(wr.by), manager: wr.manager, applies: wr.applies, auth: wr.authenticated,
		changes: parseChanges(w.t, w.live.Body, w.gvk, wr.text),
	})
	if wr.missed {
		w.restart()
	}
	w.observe(wr.missed, false)
}

func clearManagers(w *world) {
	w.live.Managers, w.untracked = nil, true
	w.statusWrite()
	w.seen.Managers = nil
}

// claim adds an entry with a time to come, as a stranger may.
func (w *world) claim(manager, fields string) {
	at := metav1.NewTime(w.now.Add(time.Hour))
	w.live.Managers = append(slices.Clone(w.live.Managers), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &at, FieldsV1: metav1.NewFieldsV1(fields),
	})
	w.statusWrite()
	w.seen.Managers = w.live.Managers
}

// A stranger may write any entries before the undo, or none.
func TestNoForgedFieldManagerHidesAnUndo(t *testing.T) {
	const containers = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":%s}}}}}`
	forged := []string{`{}`, `{"f:image":{},"f:args":{}}`, `{".":{},"f:image":{".":{},"f:bogus":{}}}`, `{"f:args":{"v:\"--debug\"":{}}}`, `{"f:image":{"f:":{}}}`}
	rapid.Check(t, func(rt *rapid.T) {
		w := newUndoWorld(t, "Deployment")
		w.play(undoWrite{by: "ci", manager: "kubectl-set", text: imagePath + ` = "registry.example/shop/web:2"`})
		if rapid.Bool().Draw(rt, "cleared") {
			clearManagers(w)
		}
		managers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"pipeline", "kubectl-set", "kubectl", "ancient-changes", "before-first-apply"}), 0, 4, rapid.ID).Draw(rt, "managers")
		for _, manager := range managers {
			w.claim(manager, fmt.Sprintf(containers, rapid.SampledFrom(forged).Draw(rt, "fields")))
		}
		change := rapid.SampledFrom([]string{
			argsPath + ` = ["serve","--debug"]`,
			imagePath + ` = "registry.example/shop/web:1"` + "\n" + argsPath + ` gone`,
			"/spec/template/spec/securityContext = {}",
		}).Draw(rt, "change")
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1).Draw(rt, "seconds")) * time.Second)
		w.play(undoWrite{by: "ci", manager: "kubectl", text: change})
		if w.state.Drift != v1alpha1.StateDrifted || w.state.Authorized.Number != 2 {
			rt.Fatalf("it is %s after entries of %v", w.standing(), managers)
		}
	})
}

// The former bodies are loaded in the rare case alone.
func TestOnlyAPossibleUndoNeedsFormerBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		write undoWrite
		want  error
	}{
		"an undo":                         {undoWrite{by: "ci", manager: "kubectl", text: imagePath + ` = "registry.example/shop/web:2"`}, ErrFormerNeeded},
		"a deployment":                    {undoWrite{by: "ci", manager: "kubectl-set", text: imagePath + ` = "registry.example/shop/web:2"`}, nil},
		"another field than the template": {undoWrite{by: "ci", manager: "kubectl", text: `/spec/replicas = 7`}, nil},
		"a stranger's write":              {undoWrite{by: "mallory", manager: "kubectl", text: imagePath + ` = "registry.example/shop/web:2"`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, "Deployment")
			w.update(write{user: user(tc.write.by), manager: tc.write.manager, changes: parseChanges(t, w.live.Body, w.gvk, tc.write.text)})
			p := Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, Prev: w.seen, SeenAt: w.now}
			r, err := Step(Input{State: w.state, Observation: p, Rules: w.rules, Now: w.now, Config: w.config, Stamps: w.policy.stamps(p)})
			if !errors.Is(err, tc.want) {
				t.Fatalf("it returns %v, want %v", err, tc.want)
			}
			if err != nil && (len(r.Effects) > 0 || r.State.Authorized.Number != 1) {
				t.Errorf("something was decided: %+v", r)
			}
		})
	}
}

// The naive twin compares the sets of all paths.
func TestFieldsThatAreAddedAgreeWithANaiveTwin(t *testing.T) {
	var fields func(depth int) *rapid.Generator[map[string]any]
	fields = func(depth int) *rapid.Generator[map[string]any] {
		return rapid.Custom(func(rt *rapid.T) map[string]any {
			m := map[string]any{}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{".", "f:a", "f:b"}), 0, 3, rapid.ID).Draw(rt, "keys") {
				m[key] = map[string]any{}
				if depth > 0 {
					m[key] = fields(depth-1).Draw(rt, key)
				}
			}
			return m
		})
	}
	var paths func(m map[string]any, at string, into map[string]bool)
	paths = func(m map[string]any, at string, into map[string]bool) {
		for key, below := range m {
			into[at+"/"+key] = true
			paths(below.(map[string]any), at+"/"+key, into)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		before, after := fields(2).Draw(rt, "before"), fields(2).Draw(rt, "after")
		had, has, want := map[string]bool{}, map[string]bool{}, false
		paths(before, "", had)
		paths(after, "", has)
		for path := range has {
			want = want || !had[path]
		}
		old, err := json.Marshal(before)
		if err != nil {
			rt.Fatal(err)
		}
		now, err := json.Marshal(after)
		if err != nil {
			rt.Fatal(err)
		}
		if got := addsFields(old, now); got != want {
			rt.Errorf("from %s to %s: %t, want %t", old, now, got, want)
		}
	})
}
