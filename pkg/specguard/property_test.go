// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// randomEdit is some lines for parseChanges that fit the live object.
func randomEdit(t *rapid.T, w *world) []diff.Change {
	doc := w.parse(w.live.Body)
	app := "/spec/template/spec/containers/[name=app]"
	n := rapid.IntRange(0, 3).Draw(t, "value")
	env := fmt.Sprintf("%s/env/[name=E%d]", app, rapid.IntRange(0, 2).Draw(t, "env"))
	options := []string{
		fmt.Sprintf("%s/image = \"registry.example/shop/web:%d\"", app, n),
		fmt.Sprintf("%s/resources/limits/cpu = \"%d\"", app, n+1),
		fmt.Sprintf("/spec/replicas = %d", n+1),
		fmt.Sprintf("/spec/paused = %t", n%2 == 0),
		fmt.Sprintf("%s/args = %s", app, []string{`["serve"]`, `["serve","--safe"]`, `["serve","--debug"]`, `["--debug","serve"]`}[n]),
		fmt.Sprintf("/spec/template/metadata/labels/tier = \"%d\"", n),
	}
	path, err := canon.ParsePath(env)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Root().Follow(path).Exists() {
		options = append(options, env+" gone", fmt.Sprintf("%s/value = \"%d\"", env, n))
	} else {
		options = append(options, fmt.Sprintf(`%s = {"name":"%s","value":"%d"}`, env, path.Last().Keys()[0].Value, n))
	}
	return parseChanges(w.t, w.live.Body, w.gvk, rapid.SampledFrom(options).Draw(t, "edit"))
}

// randomWrite has somebody write, perhaps through /scale, perhaps unrecorded.
func randomWrite(t *rapid.T, w *world, users []string) write {
	wr := write{
		user: user(rapid.SampledFrom(users).Draw(t, "user")), manager: rapid.SampledFrom([]string{"kubectl", "pipeline"}).Draw(t, "manager"),
		record: rapid.SampledFrom([]string{"yes", "no", "late"}).Draw(t, "record"),
		forged: user("ci"), // while no policy is there to overwrite it
	}
	if rapid.IntRange(0, 3).Draw(t, "scale") == 0 {
		wr.sub = "scale"
		wr.changes = parseChanges(w.t, w.live.Body, w.gvk, fmt.Sprintf("/spec/replicas = %d", rapid.IntRange(1, 5).Draw(t, "replicas")))
		return wr
	}
	for range rapid.IntRange(1, 2).Draw(t, "edits") {
		edit := randomEdit(t, w)
		if !slices.ContainsFunc(wr.changes, func(c diff.Change) bool { return touches(c, edit[0]) }) {
			wr.changes = append(wr.changes, edit...)
		}
	}
	return wr
}

// randomMoment cuts the assessor off, restarts it, lets late records in, or
// takes the stamp policy away or puts it back.
func randomMoment(t *rapid.T, w *world) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second)
	if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
		if w.policy.inForce {
			w.policy.remove()
		} else {
			w.rv++
			w.policy.make(w.now, w.rv)
		}
	}
	switch rapid.SampledFrom([]string{"watch", "watch", "watch", "miss", "skip", "relist", "restart", "records", "unknown"}).Draw(t, "moment") {
	case "watch":
		w.observe(false, false)
	case "miss":
		w.seen, w.created = nil, false
	case "skip": // the caller claims to have seen a version that never got here
		if live := w.live; w.seen != nil {
			w.seen = &live
		}
	case "relist":
		w.observe(true, false)
	case "restart":
		w.restart()
		w.observe(true, false)
	case "records":
		w.records, w.late = append(w.records, w.late...), nil
		w.observe(false, false)
	case "unknown":
		w.step(Unknown{Why: "timeout"}, nil)
		w.seen = nil
	}
}

func propertyWorld(t *rapid.T, tb testing.TB) *world {
	w := newWorld(tb)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	if w.state.Authorized == nil {
		t.Fatal("the creation by ci was not authorized")
	}
	if rapid.Bool().Draw(t, "some bodies are too large") {
		w.size = func(body []byte) int {
			if bytes.Contains(body, []byte("web:3")) {
				return v1alpha1.MaxBodyBytes + 1
			}
			return len(body)
		}
	}
	return w
}

func TestNoSequenceOfForeignWritesMovesTheAuthorizedState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		want := *w.state.Authorized
		for range rapid.IntRange(1, 12).Draw(rt, "writes") {
			w.update(randomWrite(rt, w, []string{"alice", "mallory", "hpa"}))
			randomMoment(rt, w)
		}
		w.observe(true, false)
		if diff := cmp.Diff(want, *w.state.Authorized); diff != "" {
			rt.Fatalf("authorized state moved (-want +got):\n%s", diff)
		}
	})
}

// Whatever is seen of a sequence, in whatever way, the authorized body moves
// only at paths that a trusted writer wrote through the main resource.
func TestAuthorizedBodyMovesOnlyWhereTrustedWritesWere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		body := w.state.Body
		var trusted []diff.Change // since the beginning: an unseen one may count later
		for range rapid.IntRange(1, 14).Draw(rt, "writes") {
			wr := randomWrite(rt, w, []string{"ci", "ci", "alice", "mallory", "hpa"})
			before := w.parse(w.live.Body)
			w.update(wr)
			if wr.user == user("ci") && wr.sub == "" {
				trusted = append(trusted, diff.Compare(before, w.parse(w.live.Body))...)
			}
			randomMoment(rt, w)
			for _, c := range diff.Compare(w.parse(body), w.parse(w.state.Body)) {
				if !slices.ContainsFunc(trusted, func(o diff.Change) bool { return o.Path.Covers(c.Path) && valueAt(w, o) }) {
					rt.Fatalf("authorized %s %s -> %s, which ci never wrote", c.Path, c.Before, c.After)
				}
			}
			body = w.state.Body
		}
	})
}

// A trusted write that cannot be kept is never taken back by what others write.
func TestNoSequenceOfForeignWritesEndsWhatCannotBeKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		w.size = tooLargeWhenPadded
		w.by("ci", padded)
		for range rapid.IntRange(1, 8).Draw(rt, "writes") {
			wr := randomWrite(rt, w, []string{"alice", "mallory", "hpa"})
			if rapid.IntRange(0, 3).Draw(rt, "padding") == 0 && wr.sub == "" {
				text := unpadded
				if !bytes.Contains(w.live.Body, []byte("PAD")) {
					text = padded
				}
				wr.changes = parseChanges(w.t, w.live.Body, w.gvk, text)
			}
			w.update(wr)
			randomMoment(rt, w)
			if w.state.Drift != v1alpha1.StateUnknown || w.state.Oversized == nil || w.state.Authorized.Number != 1 {
				rt.Fatalf("it is %s", w.standing())
			}
		}
	})
}

// valueAt tells whether the authorized body has what the trusted write left.
func valueAt(w *world, c diff.Change) bool {
	v := w.parse(w.state.Body).Root().Follow(c.Path)
	if c.After == nil {
		return !v.Exists()
	}
	return string(v.AppendCanonical(nil)) == string(c.After)
}

// leaves is the naive twin's view of a body: every scalar by its path, atomic
// lists whole.
func leaves(v canon.Value, prefix string, into map[string]string) {
	for i := range v.Len() {
		child := v.Index(i)
		path := prefix + "/" + string(child.Key())
		if v.Kind() == canon.List {
			path = prefix + "/" + v.ElementSegment(i).String()
		}
		if child.Kind() >= canon.List && (child.Kind() == canon.Map || child.Mode() != canon.Atomic) {
			leaves(child, path, into)
			continue
		}
		into[path] = string(child.AppendCanonical(nil))
	}
}

func leavesOf(w *world, body []byte) map[string]string {
	into := map[string]string{}
	leaves(w.parse(body).Root(), "", into)
	return into
}

// With everything seen, the machine agrees with a twin that keeps two flat maps
// and, for every trusted write, copies the leaves it changed.
func TestTrustedWritesAgreeWithANaiveTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		w.size = nil // the twin keeps everything
		want := leavesOf(w, w.state.Body)
		for range rapid.IntRange(1, 14).Draw(rt, "writes") {
			wr := write{user: user(rapid.SampledFrom([]string{"ci", "alice"}).Draw(rt, "user")), manager: "pipeline", applies: true}
			wr.changes = randomEdit(rt, w)
			if wr.changes[0].Path.Last().Name() == "args" { // lists written whole have rules of their own
				continue
			}
			before := leavesOf(w, w.live.Body)
			w.update(wr)
			after := leavesOf(w, w.live.Body)
			if wr.user == user("ci") {
				copyChanged(want, before, after, wr.changes[0])
			}
			w.observe(false, false)
			if diff := cmp.Diff(want, leavesOf(w, w.state.Body)); diff != "" {
				rt.Fatalf("authorized leaves (-twin +got):\n%s", diff)
			}
			if drifts := !maps.Equal(want, after); drifts != (w.state.FindingsTotal > 0) {
				rt.Fatalf("twin says drift %t, but there are %d findings", drifts, w.state.FindingsTotal)
			}
		}
	})
}

// copyChanged moves the twin: a change inside an element that is not authorized
// is not made.
func copyChanged(want, before, after map[string]string, c diff.Change) {
	if c.Path.Last().Name() == "value" {
		if _, ok := want[c.Path.String()]; !ok {
			return
		}
	}
	for path, value := range after {
		if before[path] != value {
			want[path] = value
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			delete(want, path)
		}
	}
}

func TestStepLeavesItsInputAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		for range 4 {
			w.update(randomWrite(rt, w, []string{"ci", "alice", "hpa"}))
			randomMoment(rt, w)
		}
		w.update(randomWrite(rt, w, []string{"ci", "alice", "hpa"}))
		in := Input{
			State:       w.state,
			Observation: Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, SeenAt: w.now},
			Records:     w.records, Rules: w.rules, Now: w.now, Config: w.config, EncodedSize: w.size,
		}
		first, err := Step(in)
		if err != nil {
			rt.Fatal(err)
		}
		var shown v1alpha1.BaselineStatus
		w.state.WriteStatus(&shown)
		second, err := Step(in)
		if err != nil {
			rt.Fatal(err)
		}
		opts := cmp.AllowUnexported(State{}, pendingWrite{}, trailEntry{})
		if diff := cmp.Diff(first, second, opts); diff != "" {
			rt.Fatalf("the same input gave another result (-first +second):\n%s", diff)
		}
		var after v1alpha1.BaselineStatus
		w.state.WriteStatus(&after)
		if diff := cmp.Diff(shown, after); diff != "" {
			rt.Fatalf("the state that came in was changed (-before +after):\n%s", diff)
		}
	})
}
