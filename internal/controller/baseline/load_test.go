// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// partial is a version of which a Tracker keeps no content.
func partial(o *kube.Object) *kube.Object {
	return &kube.Object{ObjectMeta: o.ObjectMeta, FullHash: o.FullHash, Ready: o.Ready}
}

// watched is a watch of one object, as a test has it.
type watched struct{ view kube.View }

func (w *watched) View(kube.Key) kube.View { return w.view }

func (*watched) RestoreContent(kube.Key, *kube.Object) {}

func (*watched) Settle(kube.Key, []kube.Transition) {}

func (*watched) Health(schema.GroupVersionKind) kube.Health { return kube.Health{Synced: true} }

// contents is a reader that finds one reading, or fails.
type contents struct {
	reading checks.Reading
	fails   error
	reads   int
}

// Read implements ObjectReader.
func (c *contents) Read(context.Context, kube.Resource, kube.Key) (checks.Reading, error) {
	c.reads++
	return c.reading, c.fails
}

func loader(t *testing.T, c *contents, objects ...client.Object) *Reconciler {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	r := reconcilerOn(t, objects...)
	r.Objects, r.Metrics, r.Contents, r.Records = checks.NewAhead(&watched{}), metrics, c, NewRecords()
	r.Prepare()
	return r
}

func TestContentThatIsNotKeptIsReadLive(t *testing.T) {
	a, b := object(t, "u", 1, 1, "ci"), object(t, "u", 2, 2, "alice")
	heartbeat := object(t, "u", 3, 2, "alice") // the content of b
	refused := errors.New("refused")
	found := func(o *kube.Object) *contents {
		return &contents{reading: checks.Reading{Object: o, Version: "9", At: epoch}}
	}
	step := func(prev, next *kube.Object, ago time.Duration) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch.Add(-ago)}
	}
	tests := map[string]struct {
		view     kube.View
		contents *contents
		want     time.Duration
		fails    error
		whole    bool
		reads    int
		held     bool
	}{
		"a whole object is not read":                   {view: kube.View{Current: b}, contents: found(b), whole: true},
		"nothing is read of an absent one":             {contents: found(b)},
		"nothing is read while nothing is known":       {view: kube.View{Current: partial(b), Unknown: refused}, contents: found(b)},
		"the very version is taken":                    {view: kube.View{Current: partial(b)}, contents: found(b), whole: true, reads: 1},
		"a newer version of equal content is":          {view: kube.View{Current: partial(b)}, contents: found(heartbeat), whole: true, reads: 1},
		"a version ahead of the watch waits":           {view: kube.View{Current: partial(a)}, contents: found(b), want: loadAgain, reads: 1},
		"a deletion is told by the watch":              {view: kube.View{Current: partial(a)}, contents: found(nil), want: loadAgain, reads: 1},
		"a failed read is no absence":                  {view: kube.View{Current: partial(a)}, contents: &contents{fails: refused}, fails: refused, reads: 1},
		"an object that is written all the time waits": {view: kube.View{Current: partial(b), Pending: []kube.Transition{step(partial(a), partial(b), time.Second)}}, contents: found(object(t, "u", 9, 9, "alice")), want: loadAgain, reads: 1},
		"but not for ever":                             {view: kube.View{Current: partial(b), Pending: []kube.Transition{step(partial(a), partial(b), checks.CatchUp)}}, contents: found(object(t, "u", 9, 9, "alice")), want: time.Millisecond, reads: 1, held: true},
		"an answer older than the watch is not held":   {view: kube.View{Current: partial(object(t, "u", 10, 10, "alice")), Pending: []kube.Transition{step(partial(a), partial(b), checks.CatchUp)}}, contents: found(object(t, "u", 9, 9, "alice")), want: loadAgain, reads: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := loader(t, tc.contents)
			s := &subject{key: webKey, view: tc.view, now: epoch}
			wait, err := r.loadContent(t.Context(), s)
			if wait != tc.want || !errors.Is(err, tc.fails) {
				t.Fatalf("wait %s, %v, want %s, %v", wait, err, tc.want, tc.fails)
			}
			if whole := s.view.Current != nil && !s.view.Current.Partial(); whole != tc.whole || tc.contents.reads != tc.reads {
				t.Errorf("whole: %t, %d reads, want %t, %d", whole, tc.contents.reads, tc.whole, tc.reads)
			}
			if held := r.Objects.View(webKey).Current != nil; held != tc.held {
				t.Errorf("the reading is held: %t, want %t", held, tc.held)
			}
		})
	}
}

// Labels that are not kept decide which guards select the object.
func TestLabelsThatAreNotKeptAreReadWhereAGuardMayAskForThem(t *testing.T) {
	o := object(t, "u", 1, 1, "ci")
	o.Labels = map[string]string{"tier": "gold"}
	bare := object(t, "u", 1, 1, "ci")
	bare.LabelsDropped = true
	all := []*specguard.Guard{compiled(t, v1alpha1.GuardSpec{Selector: &metav1.LabelSelector{MatchLabels: o.Labels}})}
	for name, tc := range map[string]struct {
		current  *kube.Object
		guards   []*specguard.Guard
		reads    int
		selected bool
	}{
		"a guard may ask":      {current: bare, guards: all, reads: 1, selected: true},
		"no guard asks":        {current: bare},
		"the labels are known": {current: o, guards: all, selected: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &contents{reading: checks.Reading{Object: o, Version: "1", At: epoch}}
			r := loader(t, c)
			s := &subject{key: webKey, now: epoch, view: kube.View{Current: tc.current}, snapshot: &guards.Snapshot{
				Set: specguard.NewGuardSet(tc.guards, nil, specguard.System{}), Namespaces: map[string]guards.Namespace{"shop": {}},
			}}
			if wait, err := r.loadLabels(t.Context(), s); wait != 0 || err != nil {
				t.Fatal(wait, err)
			}
			rules := s.snapshot.Set.Rules(s.query(guards.Namespace{}))
			if c.reads != tc.reads || rules.Empty() == tc.selected {
				t.Errorf("%d reads, selected: %t, want %d, %t", c.reads, !rules.Empty(), tc.reads, tc.selected)
			}
		})
	}
}

func TestAllVersionsOfEqualContentAreCompleted(t *testing.T) {
	a, b := object(t, "u", 1, 1, "ci"), object(t, "u", 2, 2, "alice")
	back := object(t, "u", 3, 1, "ci")
	pending := []kube.Transition{{Prev: partial(a), Next: partial(b)}, {Prev: partial(b), Next: partial(back)}}
	s := &subject{view: kube.View{Current: partial(back), Pending: pending}}
	s.complete(back)
	var got []bool
	for _, p := range s.view.Pending {
		got = append(got, p.Prev.Partial(), p.Next.Partial())
	}
	if diff := cmp.Diff([]bool{false, true, true, false}, got); diff != "" {
		t.Errorf("partial are (-want +got):\n%s", diff)
	}
	if !pending[0].Prev.Partial() {
		t.Error("the transitions of the watch were changed")
	}
}
