// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/controller/stamp"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// partial is a version of which a Tracker keeps no content.
func partial(o *kube.Object) *kube.Object {
	return &kube.Object{ObjectMeta: o.ObjectMeta, FullHash: o.FullHash, Ready: o.Ready}
}

// contents is a reader that finds one reading, or fails.
type contents struct {
	reading Reading
	fails   error
	reads   int
}

// Read implements ObjectReader.
func (c *contents) Read(context.Context, kube.Resource, kube.Key) (Reading, error) {
	c.reads++
	return c.reading, c.fails
}

func loader(t *testing.T, c *contents) *Reconciler {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	r := reconcilerOn(t)
	r.Objects, r.Metrics, r.Contents, r.Records = &watched{}, metrics, c, NewRecords()
	r.Prepare()
	return r
}

func TestContentThatIsNotKeptIsReadLive(t *testing.T) {
	a, b := object(t, "u", 1, 1, "ci"), object(t, "u", 2, 2, "alice")
	heartbeat := object(t, "u", 3, 2, "alice") // the content of b
	refused := errors.New("refused")
	found := func(o *kube.Object) *contents { return &contents{reading: Reading{Object: o, Version: "9", At: epoch}} }
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
		"a whole object is not read":               {view: kube.View{Current: b}, contents: found(b), whole: true},
		"nothing is read of an absent one":         {contents: found(b)},
		"nothing is read while nothing is known":   {view: kube.View{Current: partial(b), Unknown: refused}, contents: found(b)},
		"the very version is taken":                {view: kube.View{Current: partial(b)}, contents: found(b), whole: true, reads: 1},
		"a newer version of equal content is":      {view: kube.View{Current: partial(b)}, contents: found(heartbeat), whole: true, reads: 1},
		"what the watch has not told of waits":     {view: kube.View{Current: partial(a)}, contents: found(b), want: loadAgain, reads: 1},
		"a deletion is told by the watch":          {view: kube.View{Current: partial(a)}, contents: found(nil), want: loadAgain, reads: 1},
		"a failed read is no absence":              {view: kube.View{Current: partial(a)}, contents: &contents{fails: refused}, fails: refused, reads: 1},
		"what is written all the time waits":       {view: kube.View{Current: partial(b), Pending: []kube.Transition{step(partial(a), partial(b), time.Second)}}, contents: found(object(t, "u", 9, 9, "alice")), want: loadAgain, reads: 1},
		"but not for ever":                         {view: kube.View{Current: partial(b), Pending: []kube.Transition{step(partial(a), partial(b), catchUp)}}, contents: found(object(t, "u", 9, 9, "alice")), want: time.Millisecond, reads: 1, held: true},
		"an older answer is never what comes next": {view: kube.View{Current: partial(object(t, "u", 10, 10, "alice")), Pending: []kube.Transition{step(partial(a), partial(b), catchUp)}}, contents: found(object(t, "u", 9, 9, "alice")), want: loadAgain, reads: 1},
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
			if _, held := r.ahead.readings[webKey]; held != tc.held {
				t.Errorf("the reading is held: %t, want %t", held, tc.held)
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

func TestVersionsWithoutContentAreLeftOut(t *testing.T) {
	a, b, c := object(t, "u", 1, 1, "ci"), object(t, "u", 2, 2, "alice"), object(t, "u", 3, 3, "ci")
	known := v1alpha1.ObservedState{UID: "u", FullHash: string(a.FullHash)}
	step := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch}
	}
	for name, tc := range map[string]struct {
		view kube.View
		last v1alpha1.ObservedState
		want []string
	}{
		"the one between": {
			view: kube.View{Current: c, Pending: []kube.Transition{step(a, partial(b)), step(partial(b), c)}}, last: known,
			want: []string{"present u rv 3 by ci, settles 2, dropped 1, before 2"},
		},
		"the one before": {
			view: kube.View{Current: b, Pending: []kube.Transition{step(partial(a), b)}}, last: known,
			want: []string{"present u rv 2 by alice, settles 1, dropped 0, before 1"},
		},
		"one that nobody has ever looked at": {
			view: kube.View{Current: b, Pending: []kube.Transition{step(partial(a), b)}},
			want: []string{"present u rv 2 by alice, settles 1, dropped 1, before 1"},
		},
		"a creation that is not kept": {
			view: kube.View{Current: b, Pending: []kube.Transition{step(nil, partial(a)), step(partial(a), b)}},
			want: []string{"present u rv 2 by alice, settles 2, dropped 1, before 1"},
		},
		"the last one before a deletion": {
			view: kube.View{Pending: []kube.Transition{step(a, partial(b)), step(partial(b), nil)}}, last: known,
			want: []string{"absent after rv 2, settles 2, dropped 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := observations(tc.view, tc.last, false)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range all {
				text := fmt.Sprintf("%s, settles %d, dropped %d", seen(o), o.settles, o.dropped)
				if o.before != nil {
					text += ", before " + o.before.ResourceVersion
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("observations (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := observations(kube.View{Current: partial(a)}, known, false); !errors.Is(err, kube.ErrNotKept) {
		t.Errorf("a present version without content is judged: %v", err)
	}
}

// trusting are the rules of a guard that trusts CI.
func trusting(t *testing.T) specguard.Rules {
	t.Helper()
	g, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "g"}, v1alpha1.GuardSpec{
		Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		TrustedWriters: v1alpha1.Writers{Users: []string{"ci"}},
	}, nil, epoch)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	set := specguard.NewGuardSet([]*specguard.Guard{g}, nil, specguard.System{})
	return set.Rules(specguard.Query{Namespace: "shop", GVK: canon.GVK(deployments), Now: epoch})
}

// stampedAlways is a policy that was in force all the time.
type stampedAlways struct{ policyOf }

func (*stampedAlways) Stamps(stamp.Incarnation, schema.GroupVersionKind, stamp.Version) specguard.Stamps {
	return specguard.Stamps{Policy: "now", Written: true}
}

// rollout decodes a version with a pace and a deadline, of which each writer moves one.
func rollout(t *testing.T, rv, pace, deadline int, writer string) *kube.Object {
	t.Helper()
	o, err := kube.Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"shop","name":"web","uid":"u","resourceVersion":"%d","generation":%d,`+
		`"creationTimestamp":"2026-01-02T03:04:05Z","annotations":{"plumbline.dev/writer":%q}},"spec":{"minReadySeconds":%d,"progressDeadlineSeconds":%d}}`,
		rv, rv, writer, pace, deadline), deployments)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A foreign write of which the version was dropped must not pass as part of the trusted
// write after it.
func TestNothingIsAuthorisedAcrossVersionsWithoutContent(t *testing.T) {
	a, b, c := rollout(t, 1, 1, 1, "ci"), rollout(t, 2, 2, 1, "alice"), rollout(t, 3, 2, 2, "ci")
	direct := rollout(t, 2, 1, 2, "ci")
	step := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch}
	}
	for name, tc := range map[string]struct {
		pending []kube.Transition
		want    []string
	}{
		"both are kept":                       {pending: []kube.Transition{step(a, b), step(b, c)}, want: []string{"authorised by ci", "/spec/minReadySeconds by alice Foreign"}},
		"the foreign one is not":              {pending: []kube.Transition{step(a, partial(b)), step(partial(b), c)}, want: []string{"told 1", "/spec/minReadySeconds by ci Unknown", "/spec/progressDeadlineSeconds by ci Unknown"}},
		"only the authorised one is not":      {pending: []kube.Transition{step(partial(a), direct)}, want: []string{"authorised by ci"}},
		"it is not, and the write is alice's": {pending: []kube.Transition{step(partial(a), b)}, want: []string{"/spec/minReadySeconds by alice Foreign"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := loader(t, &contents{})
			r.Stamps = &stampedAlways{}
			s := &subject{key: webKey, rules: trusting(t), now: epoch, baseline: &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Name: "deployments.apps.web", Namespace: "shop"}}}
			s.view = kube.View{Current: tc.pending[len(tc.pending)-1].Next, Pending: tc.pending}
			body, err := a.Body()
			if err != nil {
				t.Fatal(err)
			}
			s.state = inSync(t, s, a, body)
			r.bodies.put(bodyKey{"shop", s.state.Authorised.Revision, s.state.Authorised.Hash}, kube.Compress(body))
			d, err := r.decide(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, decided(d)); diff != "" || d.settled != len(tc.pending) {
				t.Errorf("%d are settled (-want +got):\n%s", d.settled, diff)
			}
		})
	}
}

// decided writes what matters of a decision.
func decided(d *decision) (out []string) {
	for _, e := range d.events {
		if e.Reason == reasonVersionsDropped {
			out = append(out, "told "+e.Message[:1])
		}
	}
	for _, revision := range d.revisions {
		out = append(out, "authorised by "+revision.By)
	}
	for i := range d.state.Findings {
		f := &d.state.Findings[i]
		out = append(out, fmt.Sprintf("%s by %s %s", f.Path, f.Actor.User, f.Actor.Class))
	}
	return out
}

// inSync is the state of an object whose version is authorised.
func inSync(t *testing.T, s *subject, o *kube.Object, body []byte) specguard.State {
	t.Helper()
	hash, err := specguard.GuardedHash(body, canon.GVK(deployments), s.rules)
	if err != nil {
		t.Fatal(err)
	}
	state := specguard.NewState("deployments.apps.web", s.target())
	state.Authorised = &v1alpha1.AuthorisedState{UID: string(o.UID), Hash: string(hash), Number: 1, Revision: "deployments.apps.web-1", At: metav1.NewTime(epoch)}
	state.Drift = v1alpha1.StateInSync
	state.Observed = v1alpha1.ObservedState{
		UID: string(o.UID), Hash: string(hash), FullHash: string(o.FullHash), ResourceVersion: o.ResourceVersion,
		Generation: o.Generation, Writer: o.Writer(), StampPolicy: "now",
	}
	return state
}

func TestReadingsThatAreHeldAreBounded(t *testing.T) {
	a := newAhead(&watched{})
	o := object(t, "u", 5, 1, "ci")
	key := func(i int) kube.Key {
		return kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: fmt.Sprint("web-", i)}
	}
	n := 0
	for ; n < maxHeldBytes && a.hold(key(n), Reading{Object: o, Version: "5"}, nil); n++ {
		if n == 3 {
			break
		}
	}
	if n != 3 {
		t.Fatalf("after %d readings there is no room", n)
	}
	// One that is as large as all the room.
	large := make([]byte, 0, maxHeldBytes*2)
	large = fmt.Appendf(large, `{"metadata":{"uid":"u"},"spec":%q}`, noise(7<<20))
	huge, err := kube.Decode(large, deployments)
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for i := range 5 {
		if a.hold(key(100+i), Reading{Object: huge, Version: "6"}, nil) {
			held++
		}
	}
	if int64(held)*huge.ContentBytes() > maxHeldBytes || held == 0 || held == 5 {
		t.Errorf("%d readings of %d bytes are held", held, huge.ContentBytes())
	}
	if !a.hold(key(100), Reading{Object: huge, Version: "7"}, nil) {
		t.Error("a newer reading of an object does not take the place of the older one")
	}
}

// noise is text that no compression makes much smaller.
func noise(size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	text, x := make([]byte, size), uint64(88172645463325252)
	for i := range text {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		text[i] = letters[x%64]
	}
	return string(text)
}
