// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var (
	epoch       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	webKey      = kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: "web"}
)

// object decodes one version of a deployment.
func object(t *testing.T, uid string, rv, replicas int, writer string) *kube.Object {
	t.Helper()
	o, err := kube.Decode(fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web",`+
		`"uid":%q,"resourceVersion":"%d","generation":%d,"creationTimestamp":"2026-01-02T03:04:05Z",`+
		`"annotations":{"plumbline.dev/writer":%q},`+
		`"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"apps/v1"}]},"spec":{"replicas":%d}}`,
		uid, rv, rv, writer, replicas), deployments)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// seen writes an observation as text.
func seen(o observed) string {
	switch p := o.observation.(type) {
	case specguard.Present:
		text := fmt.Sprintf("present %s rv %s by %s", p.UID, p.ResourceVersion, p.Writer)
		if p.Prev != nil {
			text += " after rv " + p.Prev.ResourceVersion
		}
		if p.Created {
			text += " created"
		}
		return text
	case specguard.Absent:
		text := "absent"
		if p.Last != nil {
			text += " after rv " + p.Last.ResourceVersion
		}
		if p.NamespaceTerminating {
			text += " terminating"
		}
		return text
	case specguard.Unknown:
		return "unknown"
	}
	return fmt.Sprintf("%T", o.observation)
}

func TestObservations(t *testing.T) {
	a, b, c := object(t, "u", 1, 1, "ci"), object(t, "u", 2, 2, "alice"), object(t, "u", 3, 3, "ci")
	again := object(t, "v", 5, 1, "bob")
	broken := &kube.Object{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "4"}, Unreadable: errors.New("too deep")}
	known := v1alpha1.ObservedState{UID: "u", FullHash: string(a.FullHash)}
	step := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch}
	}
	jump := func(prev, next *kube.Object) kube.Transition {
		return kube.Transition{Prev: prev, Next: next, SeenAt: epoch}
	}
	tests := map[string]struct {
		view        kube.View
		last        v1alpha1.ObservedState
		terminating bool
		want        []string
		wantSettled int
	}{
		"with nothing pending what is there is looked at": {
			view: kube.View{Current: a}, want: []string{"present u rv 1 by ci"},
		},
		"with nothing there it is absent": {
			want: []string{"absent"},
		},
		"each transition is one observation with the version before": {
			view: kube.View{Current: c, Pending: []kube.Transition{step(a, b), step(b, c)}}, last: known,
			want: []string{"present u rv 2 by alice after rv 1", "present u rv 3 by ci after rv 2"}, wantSettled: 2,
		},
		"the version before the first transition is looked at if it never was": {
			view: kube.View{Current: b, Pending: []kube.Transition{step(a, b)}},
			want: []string{"present u rv 1 by ci", "present u rv 2 by alice after rv 1"}, wantSettled: 1,
		},
		"a creation that was watched says so": {
			view: kube.View{Current: a, Pending: []kube.Transition{step(nil, a)}},
			want: []string{"present u rv 1 by ci created"}, wantSettled: 1,
		},
		"after a gap the version before is not known": {
			view: kube.View{Current: c, Pending: []kube.Transition{jump(a, c)}}, last: known,
			want: []string{"present u rv 3 by ci"}, wantSettled: 1,
		},
		"an object found by a list was not created before our eyes": {
			view: kube.View{Current: a, Pending: []kube.Transition{jump(nil, a)}},
			want: []string{"present u rv 1 by ci"}, wantSettled: 1,
		},
		"delete and recreate are two observations": {
			view: kube.View{Current: again, Pending: []kube.Transition{step(a, nil), step(nil, again)}}, last: known,
			want: []string{"absent after rv 1", "present v rv 5 by bob created"}, wantSettled: 2,
		},
		"an unreadable version is unknown, and the one after it has nothing before": {
			view: kube.View{Current: c, Pending: []kube.Transition{step(a, broken), step(broken, c)}}, last: known,
			want: []string{"unknown", "present u rv 3 by ci"}, wantSettled: 2,
		},
		"what another assessor has judged is not judged again": {
			view: kube.View{Current: c, Pending: []kube.Transition{step(a, b), step(b, c)}},
			last: v1alpha1.ObservedState{UID: "u", FullHash: string(b.FullHash), ResourceVersion: "2"},
			want: []string{"present u rv 3 by ci after rv 2"}, wantSettled: 2,
		},
		"if it has judged everything, what is there is looked at": {
			view: kube.View{Current: c, Pending: []kube.Transition{step(a, b), step(b, c)}},
			last: v1alpha1.ObservedState{UID: "u", FullHash: string(c.FullHash), ResourceVersion: "3"},
			want: []string{"present u rv 3 by ci"}, wantSettled: 2,
		},
		"an object that another assessor saw die and come back is judged on from there": {
			view: kube.View{Current: again, Pending: []kube.Transition{step(a, b), step(b, nil), step(nil, again)}},
			last: v1alpha1.ObservedState{UID: "v", FullHash: string(again.FullHash), ResourceVersion: "5"},
			want: []string{"present v rv 5 by bob"}, wantSettled: 3,
		},
		"the deletion of what was judged last is judged": {
			view: kube.View{Pending: []kube.Transition{step(object(t, "u", 4, 3, "ci"), nil)}},
			last: v1alpha1.ObservedState{UID: "u", FullHash: string(c.FullHash), ResourceVersion: "3"},
			want: []string{"absent after rv 4"}, wantSettled: 1,
		},
		"and so is one of which only a list tells": {
			view: kube.View{Pending: []kube.Transition{jump(c, nil)}},
			last: v1alpha1.ObservedState{UID: "u", FullHash: string(c.FullHash), ResourceVersion: "3"},
			want: []string{"absent"}, wantSettled: 1,
		},
		"the end of a namespace is told": {
			view: kube.View{Pending: []kube.Transition{step(a, nil)}}, last: known, terminating: true,
			want: []string{"absent after rv 1 terminating"}, wantSettled: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := observations(tc.view, tc.last, tc.terminating)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			settled := 0
			for _, o := range all {
				got = append(got, seen(o))
				settled += o.settles
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("observations (-want +got):\n%s", diff)
			}
			if settled != tc.wantSettled {
				t.Errorf("they settle %d transitions, want %d", settled, tc.wantSettled)
			}
		})
	}
}

func TestMetadataIsKeptForARecreation(t *testing.T) {
	many := map[string]string{}
	for i := range kube.MaxLabels + 1 {
		many[fmt.Sprint("l", i)] = "x"
	}
	helm := kube.PackageAnnotations[0]
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                *v1alpha1.ObservedMetadata
	}{
		"labels are kept": {
			labels: map[string]string{"team": "web"}, want: &v1alpha1.ObservedMetadata{Labels: map[string]string{"team": "web"}},
		},
		"of the annotations the package's are kept alone": {
			annotations: map[string]string{helm: "shop", v1alpha1.AnnotationWriter: "ci"},
			want:        &v1alpha1.ObservedMetadata{Annotations: map[string]string{helm: "shop"}},
		},
		"of too many labels none is kept": {
			labels: many, annotations: map[string]string{helm: "shop"},
			want: &v1alpha1.ObservedMetadata{Annotations: map[string]string{helm: "shop"}},
		},
		"there may be nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			got := metadataOf(&kube.Object{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}})
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("what is kept (-want +got):\n%s", d)
			}
		})
	}
}

func TestOwnersAreKeptForARecreation(t *testing.T) {
	reference := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		r := metav1.OwnerReference{APIVersion: "shop.example/v1", Kind: "Basket", Name: "a", UID: "uid-a", BlockOwnerDeletion: new(true)}
		change(&r)
		return r
	}
	plain := func(*metav1.OwnerReference) {}
	kept := v1alpha1.ObservedOwner{APIVersion: "shop.example/v1", Kind: "Basket", Name: "a", UID: "uid-a"}
	controller := kept
	controller.Controller = v1alpha1.Enabled
	many := slices.Repeat([]metav1.OwnerReference{reference(plain)}, maxOwners)
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   []v1alpha1.ObservedOwner
	}{
		"an owner":                 {[]metav1.OwnerReference{reference(plain)}, []v1alpha1.ObservedOwner{kept}},
		"an owner that controls":   {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.Controller = new(true) })}, []v1alpha1.ObservedOwner{controller}},
		"an owner that does not":   {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.Controller = new(false) })}, []v1alpha1.ObservedOwner{kept}},
		"as many as there may be":  {many, slices.Repeat([]v1alpha1.ObservedOwner{kept}, maxOwners)},
		"of too many none is kept": {append(slices.Clone(many), reference(plain)), nil},
		"one that was cut before":  {[]metav1.OwnerReference{reference(plain), reference(func(r *metav1.OwnerReference) { r.UID = "" })}, nil},
		"a name that is none":      {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.Name = strings.Repeat("x", maxOwnerName+1) })}, nil},
		"a kind that is none":      {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.Kind = strings.Repeat("x", maxOwnerKind+1) })}, nil},
		"a uid that is none":       {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.UID = types.UID(strings.Repeat("x", maxOwnerUID+1)) })}, nil},
		"a version that is none":   {[]metav1.OwnerReference{reference(func(r *metav1.OwnerReference) { r.APIVersion = strings.Repeat("x", maxOwnerVersion+1) })}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []v1alpha1.ObservedOwner
			if m := metadataOf(&kube.Object{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}); m != nil {
				got = m.OwnerReferences
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what is kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManagersReachTheRules(t *testing.T) {
	all, err := observations(kube.View{Current: object(t, "u", 1, 1, "")}, v1alpha1.ObservedState{}, false)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := all[0].observation.(specguard.Present)
	if !ok || len(p.Managers) != 1 || p.Managers[0].Manager != "kubectl" {
		t.Errorf("observed %+v", all[0].observation)
	}
}
