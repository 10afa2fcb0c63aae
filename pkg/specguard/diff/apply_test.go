// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Each case is a trusted write from before to after, while authorized is what
// was authorized until then.
func TestATrustedWriteAuthorizesOnlyThePathsItChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		gvk                             canon.GVK
		authorized, before, after, want string
		skipped                         []string
	}{
		"a human adds an env var, CI sets an image": {
			gvk:        deployment,
			authorized: app(`,"image":"a:1"`),
			before:     app(`,"image":"a:1","env":[{"name":"DEBUG","value":"1"}]`),
			after:      app(`,"image":"a:2","env":[{"name":"DEBUG","value":"1"}]`),
			want:       app(`,"image":"a:2"`),
		},
		"CI changes the image of a container that a human added": {
			gvk:        deployment,
			authorized: app(""),
			before:     podSpec(`"containers":[{"name":"app"},{"name":"miner","image":"m:1"}]`),
			after:      podSpec(`"containers":[{"name":"app"},{"name":"miner","image":"m:2"}]`),
			want:       app(""),
			skipped:    []string{"Changed " + inPod + `/containers/[name=miner]/image "m:1" -> "m:2"`},
		},
		"CI changes the value of an env var that a human added": {
			gvk:        deployment,
			authorized: app(`,"env":[{"name":"A","value":"1"}]`),
			before:     app(`,"env":[{"name":"A","value":"1"},{"name":"X","value":"1"}]`),
			after:      app(`,"env":[{"name":"A","value":"2"},{"name":"X","value":"2"}]`),
			want:       app(`,"env":[{"name":"A","value":"2"}]`),
			skipped:    []string{"Changed " + inApp + `/env/[name=X]/value "1" -> "2"`},
		},
		"CI sets a label that a human set": {
			gvk:        custom,
			authorized: `{"spec":{"labels":{"a":"1"}}}`,
			before:     `{"spec":{"labels":{"a":"1","x":"human","y":"human"}}}`,
			after:      `{"spec":{"labels":{"a":"1","x":"ci","y":"human"}}}`,
			want:       `{"spec":{"labels":{"a":"1","x":"ci"}}}`,
		},
		"CI removes what a human added": {
			gvk:        deployment,
			authorized: app(`,"env":[{"name":"A"}]`),
			before:     app(`,"env":[{"name":"A"},{"name":"X"}]`),
			after:      app(`,"env":[{"name":"A"}]`),
			want:       app(`,"env":[{"name":"A"}]`),
		},
		"CI adds again what a human removed": {
			gvk:        deployment,
			authorized: app(`,"env":[{"name":"A","value":"1"}]`),
			before:     app(`,"env":[]`),
			after:      app(`,"env":[{"name":"A","value":"2"}]`),
			want:       app(`,"env":[{"name":"A","value":"2"}]`),
		},
		"CI reorders initContainers, with a human's among them": {
			gvk:        deployment,
			authorized: podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			before:     podSpec(`"initContainers":[{"name":"a"},{"name":"evil"},{"name":"b"}]`),
			after:      podSpec(`"initContainers":[{"name":"b"},{"name":"evil"},{"name":"a"}]`),
			want:       podSpec(`"initContainers":[{"name":"b"},{"name":"a"}]`),
		},
		"CI inserts an init container between others": {
			gvk:        deployment,
			authorized: podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			before:     podSpec(`"initContainers":[{"name":"a"},{"name":"evil"},{"name":"b"}]`),
			after:      podSpec(`"initContainers":[{"name":"a"},{"name":"evil"},{"name":"x"},{"name":"b"}]`),
			want:       podSpec(`"initContainers":[{"name":"a"},{"name":"x"},{"name":"b"}]`),
		},
		"elements that the order does not name stay behind their neighbor": {
			gvk:        deployment,
			authorized: podSpec(`"initContainers":[{"name":"head"},{"name":"a"},{"name":"tail-of-a"},{"name":"b"}]`),
			before:     podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			after:      podSpec(`"initContainers":[{"name":"b"},{"name":"a"}]`),
			want:       podSpec(`"initContainers":[{"name":"head"},{"name":"b"},{"name":"a"},{"name":"tail-of-a"}]`),
		},
		"an atomic list goes whole": {
			gvk:        deployment,
			authorized: app(`,"args":["a"]`),
			before:     app(`,"args":["a","human"]`),
			after:      app(`,"args":["a","human","ci"]`),
			want:       app(`,"args":["a","human","ci"]`),
		},
		"an element that the authorized list has twice is left alone": {
			gvk:        deployment,
			authorized: app(`,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			before:     app(`,"env":[{"name":"A","value":"2"}]`),
			after:      app(`,"env":[{"name":"A","value":"3"}]`),
			want:       app(`,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			skipped:    []string{"Changed " + inApp + `/env/[name=A]/value "2" -> "3"`},
		},
		"one that goes, and is there twice, is left alone too": {
			gvk:        deployment,
			authorized: app(`,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			before:     app(`,"env":[{"name":"A","value":"2"},{"name":"B"}]`),
			after:      app(`,"env":[{"name":"B"}]`),
			want:       app(`,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			skipped:    []string{"Removed " + inApp + `/env/[name=A] {"name":"A","value":"2"} -> `},
		},
		"what the server allocated stays": {
			gvk:        service,
			authorized: `{"metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.1","ports":[{"name":"x","nodePort":30001,"port":80}]},"status":{}}`,
			before:     `{"spec":{"ports":[{"name":"x","port":80}]}}`,
			after:      `{"spec":{"ports":[{"name":"y","port":80}]}}`,
			want:       `{"metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.1","ports":[{"name":"y","nodePort":30001,"port":80}]},"status":{}}`,
		},
		"allocated labels survive the others": {
			gvk:        job,
			authorized: `{"spec":{"template":{"metadata":{"labels":{"a":"1","controller-uid":"u"}},"spec":{}}}}`,
			before:     `{"spec":{"template":{"metadata":{"labels":{"a":"1","controller-uid":"u"}},"spec":{}}}}`,
			after:      `{"spec":{"template":{"spec":{}}}}`,
			want:       `{"spec":{"template":{"metadata":{"labels":{"controller-uid":"u"}},"spec":{}}}}`,
		},
		"a label changes that a human put beside allocated ones": {
			gvk:        job,
			authorized: `{"spec":{"template":{"metadata":{"labels":{"controller-uid":"u"}},"spec":{}}}}`,
			before:     `{"spec":{"template":{"metadata":{"labels":{"a":"1","b":"1","controller-uid":"u"}},"spec":{}}}}`,
			after:      `{"spec":{"template":{"metadata":{"labels":{"a":"2","b":"1","controller-uid":"u"}},"spec":{}}}}`,
			want:       `{"spec":{"template":{"metadata":{"labels":{"controller-uid":"u"}},"spec":{}}}}`,
			skipped:    []string{`Changed /spec/template/metadata/labels/a "1" -> "2"`},
		},
		"initContainers are reordered while one comes and one goes": {
			gvk:        deployment,
			authorized: podSpec(`"initContainers":[{"name":"a"},{"name":"b"},{"name":"c"}]`),
			before:     podSpec(`"initContainers":[{"name":"a"},{"name":"b"},{"name":"c"}]`),
			after:      podSpec(`"initContainers":[{"name":"c"},{"name":"x"},{"name":"a"}]`),
			want:       podSpec(`"initContainers":[{"name":"c"},{"name":"x"},{"name":"a"}]`),
		},
		"an empty map comes where there is only what was allocated": {
			gvk:        service,
			authorized: `{"spec":{"clusterIP":"10.0.0.1"}}`,
			before:     `{}`,
			after:      `{"spec":{}}`,
			want:       `{"spec":{}}`,
		},
		"labels come beside allocated ones": {
			gvk:        job,
			authorized: `{"spec":{"template":{"metadata":{"labels":{"controller-uid":"u"}},"spec":{}}}}`,
			before:     `{"spec":{"template":{"metadata":{"labels":{"controller-uid":"u"}},"spec":{}}}}`,
			after:      `{"spec":{"template":{"metadata":{"labels":{"a":"1"}},"spec":{}}}}`,
			want:       `{"spec":{"template":{"metadata":{"labels":{"a":"1","controller-uid":"u"}},"spec":{}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := compare(t, tc.before, tc.after, tc.gvk)
			if len(changes) == 0 {
				t.Fatal("the write changed nothing")
			}
			got, skipped, err := diff.Apply([]byte(tc.authorized), tc.gvk, changes)
			if err != nil {
				t.Fatal(err)
			}
			// As written, not by hash: order and allocated fields matter here.
			want := string(parse(t, tc.want, canon.GVK{}).Root().AppendCanonical(nil))
			if d := cmp.Diff(want, string(parse(t, string(got), canon.GVK{}).Root().AppendCanonical(nil))); d != "" {
				t.Errorf("authorized (-want +got):\n%s", d)
			}
			for _, name := range []string{"metadata", "status"} {
				a, b := parse(t, tc.want, tc.gvk).Root().Get(name), parse(t, string(got), tc.gvk).Root().Get(name)
				if !a.Equal(b) {
					t.Errorf("%s changed to %s", name, b.AppendCanonical(nil))
				}
			}
			if d := cmp.Diff(tc.skipped, lines(skipped)); d != "" {
				t.Errorf("skipped (-want +got):\n%s", d)
			}
		})
	}
}

func TestApplyRefusesWhatIsNoJSON(t *testing.T) {
	change := diff.Change{Path: path(t, "/spec/a"), Op: diff.Added, After: []byte("{")}
	if _, _, err := diff.Apply([]byte(`{"spec":{}}`), custom, []diff.Change{change}); err == nil {
		t.Error("a broken value was applied")
	}
	if _, _, err := diff.Apply([]byte(`{`), custom, nil); err == nil {
		t.Error("a broken body was read")
	}
	broken := diff.Change{Path: path(t, "/spec/a"), Op: diff.Changed, Order: []string{"[x"}}
	if _, _, err := diff.Apply([]byte(`{"spec":{"a":[]}}`), custom, []diff.Change{broken}); err == nil {
		t.Error("a broken order was applied")
	}
}

func TestApplySkipsWhatHasNoPlace(t *testing.T) {
	for name, p := range map[string]string{
		"the whole object":        "",
		"a wildcard":              "/spec/*",
		"below a wildcard":        "/*/a",
		"a position":              "/spec/l/0",
		"a member of a scalar":    "/spec/a/b",
		"an element of a map":     "/spec/[a=1]",
		"a member of a list":      "/spec/l/x",
		"below what is not there": "/nosuch/a",
		"below what is null":      "/spec/n/a",
	} {
		t.Run(name, func(t *testing.T) {
			change := diff.Change{Path: path(t, p), Op: diff.Added, After: []byte("1")}
			out, skipped, err := diff.Apply([]byte(`{"spec":{"a":1,"l":[1],"n":null}}`), custom, []diff.Change{change})
			if err != nil || len(skipped) != 1 || string(out) != `{"spec":{"a":1,"l":[1],"n":null}}` {
				t.Errorf("result is %s, skipped %q, %v", out, lines(skipped), err)
			}
		})
	}
}

func TestApplyingTheDifferenceGivesTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, gvk := drawPair(t)
		want := mustParse(t, b, gvk)
		changes := diff.Compare(mustParse(t, a, gvk), want)
		out, skipped, err := diff.Apply(a, gvk, changes)
		if err != nil || len(skipped) > 0 {
			t.Fatalf("skipped %q, %v", lines(skipped), err)
		}
		got := mustParse(t, out, gvk)
		if got.Hash() != want.Hash() {
			t.Errorf("applying %q to\n%s\ngives\n%s\nwant\n%s", lines(changes), a, got.AppendCanonical(nil), want.AppendCanonical(nil))
		}
	})
}

func TestAnAppliedPathIsNoLongerADifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		authorized, before, gvk := drawPair(t)
		after, err := editBody(t, before)
		if err != nil {
			t.Fatal(err)
		}
		live := mustParse(t, after, gvk)
		changes := diff.Compare(mustParse(t, before, gvk), live)
		out, skipped, err := diff.Apply(authorized, gvk, changes)
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]bool{}
		for _, c := range diff.Compare(mustParse(t, out, gvk), live) {
			left[c.Path.String()] = true
		}
		for _, c := range skipped {
			delete(left, c.Path.String())
		}
		for _, c := range changes {
			if left[c.Path.String()] {
				t.Errorf("%q was applied to\n%s\nand still differs in\n%s\nfrom\n%s", lines([]diff.Change{c}), authorized, out, after)
			}
		}
	})
}

// editBody edits a body as a further writer would.
func editBody(t *rapid.T, body []byte) ([]byte, error) {
	object, err := canontest.Read(body)
	if err != nil {
		return nil, err
	}
	for range rapid.IntRange(1, 2).Draw(t, "further edits") {
		object = canontest.Edit(t, object)
	}
	return canontest.Write(t, object), nil
}

// A set has no order, but people read the body: its elements keep their order.
func TestANewElementOfASetStandsBesideItsNeighbor(t *testing.T) {
	body := func(values string) string {
		return `{"spec":{"ephemeralContainers":[{"name":"e","volumeMounts":[{"mountPath":"/m","bindMountOptions":` + values + `}]}]}}`
	}
	changes := compare(t, body(`["b","a"]`), body(`["c","b","a"]`), pod)
	out, skipped, err := diff.Apply([]byte(body(`["b","a"]`)), pod, changes)
	if err != nil || len(skipped) > 0 || !strings.Contains(string(out), `["c","b","a"]`) {
		t.Errorf("result is %s, skipped %q, %v", out, lines(skipped), err)
	}
}
