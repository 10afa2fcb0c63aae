// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const (
	argsPath        = "/spec/template/spec/containers/[name=app]/args"
	tolerationsPath = "/spec/template/spec/tolerations"
	httpPath        = "/spec/http"
)

// by has somebody write through the main resource, seen at once.
func (w *world) by(who, text string) {
	w.t.Helper()
	w.now = w.now.Add(time.Second) // times of entries are whole seconds
	w.update(write{user: user(who), manager: "pipeline", applies: true, changes: parseChanges(w.t, w.live.Body, w.gvk, text)})
	w.observe(false, false)
}

// shopWorld has a Deployment that ci created under a guard.
func shopWorld(t testing.TB) *world {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	return w
}

// meshWorld has a custom resource, in which each list is atomic.
func meshWorld(t testing.TB) *world {
	w := newWorld(t)
	w.kind("networking.istio.io/v1", "VirtualService")
	w.create(write{user: user("ci")}, `{"spec":{"http":[]}}`)
	w.observe(false, false)
	return w
}

// kind has the world hold an object of another kind under a guard.
func (w *world) kind(apiVersion, kind string) {
	w.t.Helper()
	w.gvk = canon.ParseGVK(apiVersion, kind)
	w.state = NewState("x", v1alpha1.BaselineTarget{APIVersion: apiVersion, Kind: kind, Name: "web"})
	spec := testGuardSpec()
	spec.ExpectedWriters = nil
	spec.Resources = []v1alpha1.GuardedResource{{APIVersion: apiVersion, Kind: kind}}
	w.guard("shop", spec, w.now)
	w.now = w.now.Add(time.Minute)
}

func TestATrustedWriteOfAListAuthorizesOnlyTheWritersOwnEdits(t *testing.T) {
	const (
		admin = `{"name":"admin","match":[{"uri":{"prefix":"/admin"}}],"fault":{"abort":{"httpStatus":403}}}`
		all   = `{"name":"all","route":[{"destination":{"host":"web"}}]}`
		fresh = `{"name":"new","match":[{"uri":{"prefix":"/new"}}],"route":[{"destination":{"host":"new"}}]}`
	)
	for name, tc := range map[string]struct {
		world      func(testing.TB) *world
		path       string
		authorized string // by ci
		foreign    string // by alice
		written    string // by ci, over it
		want       bool   // it is authorized
	}{
		"an order that somebody else changed stays drift when an element is appended": {
			shopWorld, argsPath, `["--config=/etc/safe","--config=/etc/open","serve"]`,
			`["--config=/etc/open","--config=/etc/safe","serve"]`, `["--config=/etc/open","--config=/etc/safe","serve","--v=2"]`, false,
		},
		"the order of the writer is authorized": {
			shopWorld, argsPath, `["--config=/etc/safe","--config=/etc/open","serve"]`,
			`["--config=/etc/open","--config=/etc/safe","serve"]`, `["--config=/etc/safe","--config=/etc/open","serve","--v=2"]`, true,
		},
		"an element that somebody else repeated stays drift": {
			shopWorld, argsPath, `["--deny=all","--allow=a","serve"]`,
			`["--allow=a","--deny=all","--allow=a","serve"]`, `["--allow=a","--deny=all","--allow=a","serve","--v=2"]`, false,
		},
		"a repeated element that the writer takes out is no reason": {
			shopWorld, argsPath, `["--deny=all","--allow=a","serve"]`,
			`["--allow=a","--deny=all","--allow=a","serve"]`, `["--deny=all","--allow=a","serve","--v=2"]`, true,
		},
		"an element that somebody else added stays drift when each element is edited": {
			shopWorld, tolerationsPath, `[{"key":"a","operator":"Exists","effect":"NoExecute"}]`,
			`[{"key":"a","operator":"Exists","effect":"NoExecute"},{"operator":"Exists","effect":"NoExecute"}]`,
			`[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":30},{"operator":"Exists","effect":"NoExecute","tolerationSeconds":30}]`, false,
		},
		"an authorized element is edited and the other one taken out": {
			shopWorld, tolerationsPath, `[{"key":"a","operator":"Exists","effect":"NoExecute"}]`,
			`[{"key":"a","operator":"Exists","effect":"NoExecute"},{"operator":"Exists","effect":"NoExecute"}]`,
			`[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":30}]`, true,
		},
		"an argument that somebody else added stays drift when each argument is edited": {
			shopWorld, argsPath, `["--allow=a"]`, `["--allow=a","--allow=evil"]`, `["--allow=a,z","--allow=evil,z"]`, false,
		},
		"an element that somebody else added stays drift when it is moved": {
			shopWorld, argsPath, `["serve","--safe"]`, `["serve","--debug","--safe"]`, `["--debug","serve","--safe"]`, false,
		},
		"an element that somebody else added is replaced by the writer's": {
			shopWorld, argsPath, `["serve"]`, `["serve","--debug"]`, `["serve","--v=2"]`, true,
		},
		"an element that somebody else took out is still missing": {
			shopWorld, argsPath, `["serve","--safe","--v=1"]`, `["serve","--v=1"]`, `["serve","--v=2"]`, false,
		},
		"an element that somebody else took out is back": {
			shopWorld, argsPath, `["serve","--safe","--v=1"]`, `["serve","--v=1"]`, `["serve","--safe","--v=2"]`, true,
		},
		"routes of a custom resource in an order that somebody else changed": {
			meshWorld, httpPath, "[" + admin + "," + all + "]", "[" + all + "," + admin + "]", "[" + fresh + "," + all + "," + admin + "]", false,
		},
		"routes of a custom resource in the writer's order": {
			meshWorld, httpPath, "[" + admin + "," + all + "]", "[" + all + "," + admin + "]", "[" + fresh + "," + admin + "," + all + "]", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t)
			w.by("ci", tc.path+" = "+tc.authorized)
			if w.state.Drift != v1alpha1.StateInSync {
				t.Fatalf("the authorized list: %s", w.report())
			}
			w.by("alice", tc.path+" = "+tc.foreign)
			if w.state.Drift != v1alpha1.StateDrifted {
				t.Fatalf("the foreign list: %s", w.report())
			}
			w.effects = nil
			w.by("ci", tc.path+" = "+tc.written)
			report := w.report()
			if got := w.state.Drift == v1alpha1.StateInSync; got != tc.want {
				t.Fatalf("authorized: %t\n%s", got, report)
			}
			if !tc.want && (!strings.Contains(report, "a change by alice (untrusted)") || w.state.Findings[0].Actor.User != user("alice")) {
				t.Errorf("it does not name alice:\n%s", report)
			}
		})
	}
}

func TestAMemberOfAMapThatSomebodyElseChangedStaysDrift(t *testing.T) {
	value := func(text string) canon.Value {
		doc, err := canon.Parse([]byte(`{"spec":`+text+`}`), canon.GVK{Group: "example.org", Version: "v1", Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		return doc.Root().Get("spec")
	}
	for name, tc := range map[string]struct {
		want, before, after string
		carries             bool
	}{
		"nobody else changed it":                         {`{"a":1}`, `{"a":1}`, `{"a":2}`, false},
		"an added member that is left":                   {`{"a":1}`, `{"a":1,"x":1}`, `{"a":2,"x":1}`, true},
		"an added member that is edited":                 {`{"a":1}`, `{"a":1,"x":1}`, `{"a":2,"x":2}`, true},
		"an added member that is taken out":              {`{"a":1}`, `{"a":1,"x":1}`, `{"a":2}`, false},
		"a changed member that is left":                  {`{"a":1,"b":1}`, `{"a":9,"b":1}`, `{"a":9,"b":2}`, true},
		"a changed member that is written":               {`{"a":1,"b":1}`, `{"a":9,"b":1}`, `{"a":2,"b":1}`, false},
		"a member taken out that is missing":             {`{"a":1,"b":1}`, `{"b":1}`, `{"b":2}`, true},
		"a member taken out that is back":                {`{"a":1,"b":1}`, `{"b":1}`, `{"a":3,"b":2}`, false},
		"a map that nobody authorized":                   {`null`, `{"x":1}`, `{"x":1,"y":2}`, true},
		"a map in place of a list is the writer's whole": {`[1]`, `[1,2]`, `{"a":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := carriesForeign(value(tc.want), value(tc.before), value(tc.after)); got != tc.carries {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func TestAListThatIsTooLongToAlignAuthorizesNothing(t *testing.T) {
	long := func(from, to int) []listElement {
		var elements []listElement
		for i := from; i < to; i++ {
			elements = append(elements, listElement{text: fmt.Sprint(i)})
		}
		return elements
	}
	if !listCarriesForeign(long(0, 3000), long(3000, 6000), long(6000, 9000)) {
		t.Error("it is authorized")
	}
	if listCarriesForeign(long(0, 100_000), long(0, 100_001), long(0, 100_000)) {
		t.Error("lists that differ in one place are not aligned")
	}
}

// A list of thousands of elements that strangers changed and the writer changes again
// would hold an assessor's worker for minutes.
func TestAListWithTooManyChangedElementsAuthorizesNothing(t *testing.T) {
	list := func(n int, prefix string) []listElement {
		var elements []listElement
		for i := range n {
			elements = append(elements, listElement{text: fmt.Sprintf("%s%d", prefix, i)})
		}
		return elements
	}
	for n, want := range map[int]bool{90: false, 200: true} {
		if got := listCarriesForeign(nil, list(n, "foreign"), list(n, "written")); got != want {
			t.Errorf("%d elements: %t", n, got)
		}
	}
}

// owned is an element of the naive twin: who put it there is known.
type owned struct {
	text string
	ours bool
}

// listTwin knows the truth of one list: it applies each write of ci, element by
// element, to the authorized list as well.
type listTwin struct {
	live, authorized []owned
}

func textsOf(list []owned) string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = fmt.Sprintf("%q", e.text)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// edit makes one edit of the live list, and the same one of the authorized list where
// the edited element is authorized.
func (l *listTwin) edit(rt *rapid.T, ours bool) {
	// Who put an element there is known by its text alone, so texts are not shared.
	texts := []string{"--evil", "--debug", "--evil=2"}
	if ours {
		texts = []string{"--a=2", "--v=1", "--safe"}
	}
	operations := []string{"insert"}
	if len(l.live) > 0 {
		operations = append(operations, "delete", "move", "touch")
	}
	switch rapid.SampledFrom(operations).Draw(rt, "operation") {
	case "insert":
		e := owned{rapid.SampledFrom(texts).Draw(rt, "text"), ours}
		at := rapid.IntRange(0, len(l.live)).Draw(rt, "at")
		if ours {
			// Behind the nearest authorized element before it.
			place := 0
			for _, before := range l.live[:at] {
				if i := slices.Index(l.authorized, before); before.ours && i >= 0 {
					place = i + 1
				}
			}
			l.authorized = slices.Insert(slices.Clone(l.authorized), place, e)
		}
		l.live = slices.Insert(slices.Clone(l.live), at, e)
	case "delete":
		at := rapid.IntRange(0, len(l.live)-1).Draw(rt, "at")
		if i := slices.Index(l.authorized, l.live[at]); ours && l.live[at].ours && i >= 0 {
			l.authorized = slices.Delete(slices.Clone(l.authorized), i, i+1)
		}
		l.live = slices.Delete(slices.Clone(l.live), at, at+1)
	case "touch":
		at := rapid.IntRange(0, len(l.live)-1).Draw(rt, "at")
		e := l.live[at]
		e.text += ",z"
		if i := slices.Index(l.authorized, l.live[at]); ours && e.ours && i >= 0 {
			l.authorized = slices.Clone(l.authorized)
			l.authorized[i] = e
		}
		if !ours {
			e.ours = false
		}
		l.live = slices.Clone(l.live)
		l.live[at] = e
	case "move":
		from, to := rapid.IntRange(0, len(l.live)-1).Draw(rt, "from"), rapid.IntRange(0, len(l.live)-1).Draw(rt, "to")
		e := l.live[from]
		l.live = slices.Insert(slices.Delete(slices.Clone(l.live), from, from+1), to, e)
		if ours { // an order of one's own is authorized only as a whole
			l.authorized = nil
		}
	}
}

// Whatever strangers did to a list, an edit by ci authorizes the list only where the
// same edit of the authorized list leads to it.
func TestNoEditOfATrustedWriterAuthorizesWhatStrangersDidToAList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := shopWorld(t)
		l := listTwin{}
		for i := range rapid.IntRange(1, 4).Draw(rt, "length") {
			l.live = append(l.live, owned{fmt.Sprintf("--%c=1", 'a'+i), true})
		}
		l.authorized = l.live
		w.by("ci", argsPath+" = "+textsOf(l.live))
		for range rapid.IntRange(1, 3).Draw(rt, "strangers") {
			l.edit(rt, false)
			w.by("mallory", argsPath+" = "+textsOf(l.live))
		}
		before := textsOf(l.authorized)
		l.edit(rt, true)
		w.by("ci", argsPath+" = "+textsOf(l.live))
		path, err := canon.ParsePath(argsPath)
		if err != nil {
			rt.Fatal(err)
		}
		got := string(w.parse(w.state.Body).Root().Follow(path).AppendCanonical(nil))
		if got != before && got != textsOf(l.authorized) && !strangersLeftNothing(l) {
			rt.Fatalf("authorized is %s, before it was %s, and with ci's edit it is %s", got, before, textsOf(l.authorized))
		}
	})
}

// strangersLeftNothing tells that each element of the live list is ci's.
func strangersLeftNothing(l listTwin) bool {
	return !slices.ContainsFunc(l.live, func(e owned) bool { return !e.ours })
}
