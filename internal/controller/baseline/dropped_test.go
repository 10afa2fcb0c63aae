// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

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
		"one that was never judged": {
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

// compiled is a guard over Deployments that trusts CI.
func compiled(t *testing.T, spec v1alpha1.GuardSpec) *specguard.Guard {
	t.Helper()
	spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	spec.TrustedWriters = v1alpha1.Writers{Users: []string{"ci"}}
	g, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "g"}, spec, nil, epoch)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return g
}

// trusting are the rules of a guard that trusts CI.
func trusting(t *testing.T) specguard.Rules {
	t.Helper()
	set := specguard.NewGuardSet([]*specguard.Guard{compiled(t, v1alpha1.GuardSpec{})}, nil, specguard.System{})
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
func TestNothingIsAuthorizedAcrossVersionsWithoutContent(t *testing.T) {
	a, b, c := rollout(t, 1, 1, 1, "ci"), rollout(t, 2, 2, 1, "alice"), rollout(t, 3, 2, 2, "ci")
	direct := rollout(t, 2, 1, 2, "ci")
	step := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch}
	}
	for name, tc := range map[string]struct {
		pending []kube.Transition
		want    []string
	}{
		"both are kept":                       {pending: []kube.Transition{step(a, b), step(b, c)}, want: []string{"authorized by ci", "/spec/minReadySeconds by alice Untrusted"}},
		"the foreign one is not":              {pending: []kube.Transition{step(a, partial(b)), step(partial(b), c)}, want: []string{"told 1", "/spec/minReadySeconds by ci Unknown", "/spec/progressDeadlineSeconds by ci Unknown"}},
		"only the authorized one is not":      {pending: []kube.Transition{step(partial(a), direct)}, want: []string{"authorized by ci"}},
		"it is not, and the write is alice's": {pending: []kube.Transition{step(partial(a), b)}, want: []string{"/spec/minReadySeconds by alice Untrusted"}},
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
			r.bodies.put(bodyKey{"shop", s.state.Authorized.Revision, s.state.Authorized.Hash}, kube.Compress(body))
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

// An object that was there before its guard is imported as the guard met it. A foreign
// write that came before the first judgment must not be imported in its place.
func TestAWriteOverAVersionThatWasNeverJudgedIsNotImported(t *testing.T) {
	a, b, again := rollout(t, 1, 1, 1, "ci"), rollout(t, 2, 2, 1, "alice"), rollout(t, 3, 2, 2, "ci")
	step := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch}
	}
	since := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	since.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	judge := func(state specguard.State, view kube.View) *decision {
		r := loader(t, &contents{}, since.DeepCopy())
		r.Stamps = &stampedAlways{}
		s := &subject{key: webKey, rules: trusting(t), now: epoch, view: view, state: state}
		d, err := r.decide(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	fresh := specguard.NewState("deployments.apps.web", (&subject{key: webKey}).target())
	kept := judge(fresh, kube.View{Current: b, Pending: []kube.Transition{step(a, b)}})
	if diff := cmp.Diff([]string{"authorized by ", "/spec/minReadySeconds by alice Untrusted"}, decided(kept)); diff != "" {
		t.Errorf("with both versions (-want +got):\n%s", diff)
	}
	lost := judge(fresh, kube.View{Current: b, Pending: []kube.Transition{step(partial(a), b)}})
	if len(lost.revisions) > 0 || lost.state.Drift != v1alpha1.StateDrifted || lost.state.Findings[0].Class != v1alpha1.ClassObjectUnexpected {
		t.Errorf("without the first one it is %s, %v", lost.state.Drift, decided(lost))
	}
	// Neither a second look nor a write of a trusted writer makes up for it.
	for name, view := range map[string]kube.View{
		"another look":    {Current: b},
		"a trusted write": {Current: again, Pending: []kube.Transition{step(b, again)}},
	} {
		if d := judge(lost.state, view); len(d.revisions) > 0 || d.state.Drift != v1alpha1.StateDrifted {
			t.Errorf("after %s it is %s, %v", name, d.state.Drift, decided(d))
		}
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
		out = append(out, "authorized by "+revision.By)
	}
	for i := range d.state.Findings {
		f := &d.state.Findings[i]
		out = append(out, fmt.Sprintf("%s by %s %s", f.Path, f.Actor.User, f.Actor.Class))
	}
	return out
}

// inSync is the state of an object whose version is authorized.
func inSync(t *testing.T, s *subject, o *kube.Object, body []byte) specguard.State {
	t.Helper()
	hash, err := specguard.GuardedHash(body, canon.GVK(deployments), s.rules)
	if err != nil {
		t.Fatal(err)
	}
	state := specguard.NewState("deployments.apps.web", s.target())
	state.Authorized = &v1alpha1.AuthorizedState{UID: string(o.UID), Hash: string(hash), Number: 1, Revision: "deployments.apps.web-1", AuthorizationTime: metav1.NewTime(epoch)}
	state.Drift = v1alpha1.StateInSync
	state.Observed = v1alpha1.ObservedState{
		UID: string(o.UID), Hash: string(hash), FullHash: string(o.FullHash), ResourceVersion: o.ResourceVersion,
		Generation: o.Generation, Writer: o.Writer(), StampPolicy: "now",
	}
	return state
}
