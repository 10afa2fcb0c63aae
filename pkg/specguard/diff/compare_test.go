// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

var (
	deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	pod        = canon.GVK{Version: "v1", Kind: "Pod"}
	service    = canon.GVK{Version: "v1", Kind: "Service"}
	job        = canon.GVK{Group: "batch", Version: "v1", Kind: "Job"}
	custom     = canon.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func podSpec(members string) string { return `{"spec":{"template":{"spec":{` + members + `}}}}` }

func app(members string) string {
	return podSpec(`"containers":[{"name":"app"` + members + `}]`)
}

func parse(tb testing.TB, body string, gvk canon.GVK) *canon.Document {
	tb.Helper()
	d, err := canon.Parse([]byte(body), gvk)
	if err != nil {
		tb.Fatalf("parsing %.300s: %v", body, err)
	}
	return d
}

func path(tb testing.TB, text string) canon.Path {
	tb.Helper()
	p, err := canon.ParsePath(text)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func compare(tb testing.TB, before, after string, gvk canon.GVK, exclude ...canon.Path) []diff.Change {
	tb.Helper()
	return diff.Compare(parse(tb, before, gvk), parse(tb, after, gvk), exclude...)
}

// lines shows changes as "Op path before -> after {order}".
func lines(changes []diff.Change) []string {
	var out []string
	for _, c := range changes {
		line := strings.Join([]string{string(c.Op), c.Path.String(), string(c.Before), "->", string(c.After)}, " ")
		if c.Order != nil {
			line += " {" + strings.Join(c.Order, " ") + "}"
		}
		out = append(out, line)
	}
	return out
}

const (
	inPod = "/spec/template/spec"
	inApp = inPod + "/containers/[name=app]"
)

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		gvk           canon.GVK
		before, after string
		exclude       []string
		want          []string
	}{
		"nothing changed":                   {gvk: service, before: `{"spec":{"a":1}}`, after: `{"spec":{"a":1.0,"b":null}}`},
		"metadata and status are no matter": {gvk: custom, before: `{"metadata":{"a":1}}`, after: `{"status":2}`},
		"a member changed, one came, one went": {
			gvk: custom, before: `{"spec":{"a":1,"b":2}}`, after: `{"spec":{"a":"1","c":{"d":[]}}}`,
			want: []string{`Changed /spec/a 1 -> "1"`, "Removed /spec/b 2 -> ", `Added /spec/c  -> {"d":[]}`},
		},
		"another kind of value": {
			gvk: custom, before: `{"spec":{"a":[1]}}`, after: `{"spec":{"a":{"0":1}}}`,
			want: []string{`Changed /spec/a [1] -> {"0":1}`},
		},
		"an empty map came": {
			gvk: custom, before: `{"spec":{}}`, after: `{"spec":{"a":{}}}`, want: []string{"Added /spec/a  -> {}"},
		},
		"an atomic list is one value": {
			gvk: deployment, before: app(`,"args":["a","b"]`), after: app(`,"args":["b","a"]`),
			want: []string{"Changed " + inApp + `/args ["a","b"] -> ["b","a"]`},
		},
		"an image": {
			gvk:    deployment,
			before: podSpec(`"containers":[{"name":"x"},{"name":"app","image":"a:1"}]`),
			after:  podSpec(`"containers":[{"name":"app","image":"a:2"},{"name":"x"}]`),
			want:   []string{"Changed " + inApp + `/image "a:1" -> "a:2"`},
		},
		"a container came and one went": {
			gvk: deployment, before: podSpec(`"containers":[{"name":"app"},{"name":"old"}]`),
			after: podSpec(`"containers":[{"name":"new"},{"name":"app"}]`),
			want: []string{
				"Added " + inPod + `/containers/[name=new]  -> {"name":"new"} {[name=new] [name=app]}`,
				"Removed " + inPod + `/containers/[name=old] {"name":"old"} -> `,
			},
		},
		"two ports of one number": {
			gvk:    deployment,
			before: app(`,"ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]`),
			after:  app(`,"ports":[{"containerPort":53,"protocol":"UDP","name":"dns"},{"containerPort":53,"protocol":"TCP"}]`),
			want:   []string{"Added " + inApp + `/ports/[containerPort=53,protocol=UDP]/name  -> "dns"`},
		},
		"initContainers reordered": {
			gvk: deployment, before: podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			after: podSpec(`"initContainers":[{"name":"b"},{"name":"a"}]`),
			want: []string{"Changed " + inPod + `/initContainers [{"name":"a"},{"name":"b"}] -> [{"name":"b"},{"name":"a"}]` +
				` {[name=b] [name=a]}`},
		},
		"initContainers reordered and one changed": {
			gvk: deployment, before: podSpec(`"initContainers":[{"name":"a"},{"name":"b","image":"1"}]`),
			after: podSpec(`"initContainers":[{"name":"b","image":"2"},{"name":"a"}]`),
			want: []string{
				"Changed " + inPod + `/initContainers [{"name":"a"},{"image":"1","name":"b"}] -> [{"image":"2","name":"b"},{"name":"a"}]` +
					` {[name=b] [name=a]}`,
				"Changed " + inPod + `/initContainers/[name=b]/image "1" -> "2"`,
			},
		},
		"an init container inserted is no reordering": {
			gvk: deployment, before: podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			after: podSpec(`"initContainers":[{"name":"a"},{"name":"x"},{"name":"b"}]`),
			want:  []string{"Added " + inPod + `/initContainers/[name=x]  -> {"name":"x"} {[name=a] [name=x] [name=b]}`},
		},
		"env that begins to refer counts its order": {
			gvk: deployment, before: app(`,"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]`),
			after: app(`,"env":[{"name":"B","value":"$(A)"},{"name":"A","value":"1"}]`),
			want: []string{
				"Changed " + inApp + `/env [{"name":"A","value":"1"},{"name":"B","value":"2"}]` +
					` -> [{"name":"B","value":"$(A)"},{"name":"A","value":"1"}] {[name=B] [name=A]}`,
				"Changed " + inApp + `/env/[name=B]/value "2" -> "$(A)"`,
			},
		},
		"a list with a name twice is one value": {
			gvk: deployment, before: app(`,"env":[{"name":"A","value":"1"}]`), after: app(`,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			want: []string{"Changed " + inApp + `/env [{"name":"A","value":"1"}] -> [{"name":"A","value":"1"},{"name":"A","value":"2"}]`},
		},
		"what the server allocates is no change": {
			gvk: service, before: `{"spec":{"ports":[{"port":80,"nodePort":1}]}}`,
			after: `{"spec":{"clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":2}]}}`,
		},
		"excluded paths are no change": {
			gvk: deployment, before: `{"spec":{"replicas":1}}`,
			after:   `{"spec":{"replicas":2,"template":{"metadata":{"annotations":{"a":"b"}}}}}`,
			exclude: []string{"/spec/replicas", "/spec/template/metadata/annotations/a"},
		},
		"keys with slashes": {
			gvk: custom, before: `{"spec":{"a/b":{"~":1}}}`, after: `{"spec":{"a/b":{"~":2}}}`,
			want: []string{"Changed /spec/a~1b/~0 1 -> 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var exclude []canon.Path
			for _, text := range tc.exclude {
				exclude = append(exclude, path(t, text))
			}
			got := lines(compare(t, tc.before, tc.after, tc.gvk, exclude...))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("changes (-want +got):\n%s", d)
			}
		})
	}
}

func TestCompareSets(t *testing.T) {
	set := func(values string) string {
		return `{"spec":{"containers":[{"name":"a","resources":{"claims":[]}}],"ephemeralContainers":[{"name":"e","volumeMounts":[` +
			`{"mountPath":"/m","bindMountOptions":` + values + `}]}]}}`
	}
	const at = "/spec/ephemeralContainers/[name=e]/volumeMounts/[mountPath=~1m]/bindMountOptions"
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"an element came and one went": {
			`["b","a"]`, `["c","b"]`, []string{"Removed " + at + `/[=a] "a" -> `, "Added " + at + `/[=c]  -> "c" {[=c] [=b]}`},
		},
		"an element twice makes it one value": {
			`["a"]`, `["a","a"]`, []string{"Changed " + at + ` ["a"] -> ["a","a"]`},
		},
		"another order": {`["a","b"]`, `["b","a"]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, lines(compare(t, set(tc.before), set(tc.after), pod))); d != "" {
				t.Errorf("changes (-want +got):\n%s", d)
			}
		})
	}
}

func TestCompareStaysWithinTheBoundsOfPaths(t *testing.T) {
	deep := func(leaf string) string {
		return `{"spec":` + strings.Repeat(`{"a":`, 100) + leaf + strings.Repeat("}", 100) + "}"
	}
	long := func(leaf string) string {
		return `{"spec":{"m":{"` + strings.Repeat("k", 1100) + `":` + leaf + `,"x":` + leaf + `}}}`
	}
	for name, body := range map[string]func(string) string{"depth": deep, "length": long} {
		t.Run(name, func(t *testing.T) {
			got := compare(t, body("1"), body("2"), custom)
			if len(got) != 1 || got[0].Op != diff.Changed {
				t.Fatalf("changes are %q, want one", lines(got))
			}
			if _, err := canon.ParsePath(got[0].Path.String()); err != nil {
				t.Error(err)
			}
			if len(compare(t, body("1"), body("1"), custom)) != 0 {
				t.Error("equal bodies have changes")
			}
		})
	}
}

// drawPair draws two bodies of one kind that have much in common.
func drawPair(t *rapid.T) (a, b []byte, gvk canon.GVK) {
	kinds := map[string]canon.GVK{"Deployment": deployment, "Pod": pod, "Service": service, "Widget": custom}
	kind := rapid.SampledFrom([]string{"Deployment", "Pod", "Service", "Widget"}).Draw(t, "object")
	object := canontest.Body(t, kind)
	a = canontest.Write(t, object)
	for range rapid.IntRange(0, 3).Draw(t, "edits") {
		object = canontest.Edit(t, object).(canontest.Members)
	}
	return a, canontest.Write(t, object), kinds[kind]
}

func mustParse(t *rapid.T, body []byte, gvk canon.GVK) *canon.Document {
	d, err := canon.Parse(body, gvk)
	if err != nil {
		t.Fatalf("parsing %s: %v", body, err)
	}
	return d
}

func TestCompareIsEmptyIfAndOnlyIfTheHashesAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, gvk := drawPair(t)
		var exclude []canon.Path
		for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"/spec/*", "/spec/template/spec/containers/*/env", "/data", "/spec/containers/[name=app]", "/spec/ports/*/name",
		}), 0, 2).Draw(t, "exclude") {
			p, err := canon.ParsePath(text)
			if err != nil {
				t.Fatal(err)
			}
			exclude = append(exclude, p)
		}
		before, after := mustParse(t, a, gvk), mustParse(t, b, gvk)
		changes := diff.Compare(before, after, exclude...)
		if equal := before.Hash(exclude...) == after.Hash(exclude...); equal != (len(changes) == 0) {
			t.Errorf("hashes equal: %v, changes: %q\n%s\n%s", equal, lines(changes), a, b)
		}
		if !slices.IsSortedFunc(changes, func(x, y diff.Change) int { return x.Path.Compare(y.Path) }) {
			t.Errorf("changes are not sorted: %q", lines(changes))
		}
		for _, c := range changes {
			if (c.Before == nil) != (c.Op == diff.Added) || (c.After == nil) != (c.Op == diff.Removed) {
				t.Errorf("values do not fit the operation: %q", lines([]diff.Change{c}))
			}
			if again, err := canon.ParsePath(c.Path.String()); err != nil || !again.Equal(c.Path) {
				t.Errorf("path %s does not read back: %v", c.Path, err)
			}
		}
	})
}
