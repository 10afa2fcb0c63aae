// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var deploymentKind = canon.ParseGVK("apps/v1", "Deployment")

// labeled is an object whose labels decide which guards select it, with the
// assessor's look at it.
type labeled struct {
	*world
	status v1alpha1.BaselineStatus
	prev   map[string]string // labels of the version before
}

// newLabeled has a guard "all" without a selector, so that the object is guarded
// always, and an object that CI made with these labels.
func newLabeled(t testing.TB, set string, guards ...*Guard) *labeled {
	w := &labeled{world: newWorld(t)}
	w.guards = append([]*Guard{selecting(t, "all", "uid-all", "")}, guards...)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, testDeployment)
	w.live.Labels = parseSet(set)
	w.prev = w.live.Labels
	w.look()
	return w
}

func parseSet(text string) map[string]string {
	set := map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(pair, "=")
		set[key] = value
	}
	return set
}

// selecting is a guard that trusts CI; its selector is written as kubectl writes it.
func selecting(t testing.TB, name, uid, selector string) *Guard {
	t.Helper()
	spec := testGuardSpec()
	spec.Resources = deployments
	if selector != "" {
		s, err := metav1.ParseToLabelSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		spec.Selector = s
	}
	g, errs := Compile(GuardRef{Namespace: "shop", Name: name}, spec, nil, testNow)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return g.WithUID(types.UID(uid))
}

// edit puts a guard in the place of the one with its name.
func (w *labeled) edit(g *Guard) {
	w.guards = slices.DeleteFunc(w.guards, func(o *Guard) bool { return o.ref == g.ref })
	w.guards = append(w.guards, g)
}

// label has somebody set the labels, and perhaps the image in the same write.
func (w *labeled) label(by, set string, withImage bool) {
	w.t.Helper()
	if withImage {
		image := fmt.Sprintf("%s = \"registry.example/shop/web:%d\"", imagePath, w.rv+100)
		w.update(write{user: user(by), manager: "pipeline", applies: true, changes: parseChanges(w.t, w.live.Body, w.gvk, image)})
	} else {
		w.rv++
		w.live.ResourceVersion = strconv.Itoa(w.rv)
	}
	w.prev, w.live.Labels = w.live.Labels, parseSet(set)
}

// look is one reconciliation.
func (w *labeled) look() {
	w.t.Helper()
	w.ask()
	w.observe(false, false)
	w.state.WriteStatus(&w.status)
	w.status.Guards = w.rules.ListSelectingGuards()
	w.prev = w.live.Labels
	w.ask() // without the labels of before
}

func (w *labeled) ask() {
	q := Query{Namespace: "shop", GVK: w.gvk, Now: w.now, Kept: &w.status, Labels: []map[string]string{w.live.Labels, w.prev}}
	w.rules = NewGuardSet(w.guards, nil, System{}).Rules(q)
}

// reload restarts the assessor: it knows what is stored.
func (w *labeled) reload() {
	w.t.Helper()
	raw, err := json.Marshal(w.status)
	if err != nil {
		w.t.Fatal(err)
	}
	w.status = v1alpha1.BaselineStatus{}
	if err := json.Unmarshal(raw, &w.status); err != nil {
		w.t.Fatal(err)
	}
	w.restartWith(w.status)
}

// upgrade has the Baseline be one of before there were selections.
func (w *labeled) upgrade() {
	w.status.Selection = nil
	w.reload()
}

// M6 of the guard's review: a guard kept by its name whatever it once selected.
func TestASelectorThatNarrowsLetsGo(t *testing.T) {
	frontend := func(uid string) *Guard { return selecting(t, "g", uid, "tier=frontend") }
	backend := selecting(t, "g", "uid-1", "tier=backend")
	tests := map[string]struct {
		labels string
		guards []*Guard
		do     func(*labeled)
		want   string
	}{
		"the guard selects other labels now": {labels: "tier=frontend", do: func(w *labeled) { w.edit(backend) }},
		"the guard selects less now": {
			labels: "tier=frontend", do: func(w *labeled) { w.edit(selecting(t, "g", "uid-1", "tier=frontend,app=web")) },
		},
		"an edit that selects the same": {
			labels: "tier=frontend", do: func(w *labeled) { w.edit(selecting(t, "g", "uid-1", "tier in (frontend,backend)")) }, want: "g",
		},
		"a tenant takes the label off": {
			labels: "tier=frontend", do: func(w *labeled) { w.label("alice", "", false) }, want: "g",
		},
		"a tenant takes the label off in a write that changes the image, too": {
			labels: "tier=frontend", do: func(w *labeled) { w.label("alice", "", true) }, want: "g",
		},
		"a label that only changes has no proven author": {
			labels: "tier=frontend", do: func(w *labeled) { w.label("ci", "", false) }, want: "g",
		},
		"a trusted writer changes label and image at once": {
			labels: "tier=frontend", do: func(w *labeled) { w.label("ci", "tier=backend", true) },
		},
		"a trusted writer who writes over what a tenant took off frees nothing": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) { w.label("alice", "", false); w.look(); w.label("ci", "app=web", true) },
		},
		"a tenant takes the label off, and the guard is edited elsewhere": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) { w.label("alice", "", false); w.look(); w.edit(frontend("uid-1")) },
		},
		"a tenant takes the label off, and the guard narrows": {
			labels: "tier=frontend",
			do:     func(w *labeled) { w.label("alice", "", false); w.look(); w.edit(backend) },
		},
		"a tenant moves the object along with an edit and back": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) {
				w.label("alice", "tier=backend", false)
				w.look()
				w.edit(backend)
				w.look()
				w.edit(frontend("uid-1"))
			},
		},
		"a label that was put on later counts as long as the guard asks for it": {
			labels: "", want: "g",
			do: func(w *labeled) { w.label("ci", "tier=frontend", false); w.look(); w.label("alice", "", false) },
		},
		"and releases when the guard asks for another": {
			labels: "", do: func(w *labeled) {
				w.label("ci", "tier=frontend", false)
				w.look()
				w.label("alice", "", false)
				w.look()
				w.edit(backend)
			},
		},
		"the absence of a label is remembered, too": {
			labels: "exempt=true", guards: []*Guard{selecting(t, "g", "uid-1", "!exempt")}, want: "g",
			do: func(w *labeled) {
				w.label("ci", "", false)
				w.look()
				w.reload()
				w.label("alice", "exempt=true", false)
			},
		},
		"a guard made anew under the name inherits nothing": {
			labels: "tier=frontend", do: func(w *labeled) { w.label("alice", "", false); w.look(); w.edit(frontend("uid-2")) },
		},
		"a guard made anew selects what it selects": {
			labels: "tier=frontend", do: func(w *labeled) { w.edit(frontend("uid-2")) }, want: "g",
		},
		"of two guards the one that narrows lets go": {
			labels: "tier=frontend", guards: []*Guard{frontend("uid-1"), selecting(t, "h", "uid-h", "tier=frontend")},
			do: func(w *labeled) { w.label("alice", "", false); w.look(); w.edit(backend) }, want: "h",
		},
		"a suspended guard keeps": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) {
				g := *frontend("uid-1")
				g.suspendedUntil = w.now.Add(time.Hour)
				w.edit(&g)
				w.look()
				w.label("alice", "", false)
				w.look()
				w.edit(frontend("uid-1"))
			},
		},
		"a suspended guard that narrows lets go": {
			labels: "tier=frontend",
			do: func(w *labeled) {
				g := *backend
				g.suspendedUntil = w.now.Add(time.Hour)
				w.edit(&g)
			},
		},
		"a guard whose selector does not compile for a moment forgets nothing": {
			labels: "", want: "g",
			do: func(w *labeled) {
				w.label("ci", "tier=frontend", false)
				w.look()
				w.label("alice", "", false)
				w.look()
				w.edit(CompileInert(GuardRef{Namespace: "shop", Name: "g"}, v1alpha1.GuardSpec{Resources: deployments, Selector: &metav1.LabelSelector{}}, nil, testNow).WithUID("uid-1"))
				w.look()
				w.edit(frontend("uid-1"))
			},
		},
		"an upgrade keeps what a tenant had freed": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) { w.label("alice", "", false); w.look(); w.upgrade() },
		},
		"an upgrade keeps what a tenant had freed, also after a later edit": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) {
				w.label("alice", "", false)
				w.look()
				w.upgrade()
				w.look()
				w.edit(selecting(t, "g", "uid-1", "tier in (backend,frontend)"))
			},
		},
		"an upgrade does not keep for ever": {
			labels: "tier=frontend",
			do:     func(w *labeled) { w.label("alice", "", false); w.look(); w.upgrade(); w.look(); w.edit(backend) },
		},
		"an object that a trusted writer makes anew is another": {
			labels: "tier=frontend",
			do: func(w *labeled) {
				w.remove(write{user: user("ci")})
				w.observe(false, false)
				w.create(write{user: user("ci")}, testDeployment)
				w.live.Labels, w.prev = nil, nil
			},
		},
		"an object that a tenant makes anew is the same": {
			labels: "tier=frontend", want: "g",
			do: func(w *labeled) {
				w.remove(write{user: user("alice")})
				w.observe(false, false)
				w.create(write{user: user("alice")}, testDeployment)
				w.live.Labels, w.prev = nil, nil
			},
		},
	}
	for name, tc := range tests {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restarts), func(t *testing.T) {
				guards := tc.guards
				if guards == nil {
					guards = []*Guard{frontend("uid-1")}
				}
				w := newLabeled(t, tc.labels, guards...)
				tc.do(w)
				w.look()
				if restarts {
					w.reload()
				}
				w.look()
				want := []string{"SpecGuard/all"}
				if tc.want != "" {
					want = append(want, "SpecGuard/"+tc.want)
				}
				if diff := cmp.Diff(want, w.rules.ListSelectingGuards()); diff != "" {
					t.Errorf("selecting (-want +got):\n%s\nremembered %+v", diff, w.status.Selection)
				}
			})
		}
	}
}

// A Baseline whose object is gone is kept by what it remembers, too.
func TestASelectorThatNarrowsLetsGoOfAMissingObject(t *testing.T) {
	w := newLabeled(t, "tier=frontend", selecting(t, "g", "uid-1", "tier=frontend"))
	w.remove(write{user: user("alice")})
	w.state.Observed.Metadata = &v1alpha1.ObservedMetadata{Labels: w.live.Labels}
	w.live.Labels, w.prev = nil, nil
	w.upgrade()
	w.look()
	if got := w.rules.ListSelectingGuards(); !slices.Contains(got, "SpecGuard/g") {
		t.Errorf("the guard let go of what is missing: %v", got)
	}
	w.edit(selecting(t, "g", "uid-1", "tier=backend"))
	w.look()
	if got := w.rules.ListSelectingGuards(); slices.Contains(got, "SpecGuard/g") {
		t.Errorf("the narrowed guard holds what is missing: %v", got)
	}
}
