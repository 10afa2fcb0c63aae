// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// padding is text that no compression makes much smaller.
func padding(size int, seed uint64) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	source := rand.New(rand.NewPCG(seed, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[source.IntN(len(letters))]
	}
	return string(text)
}

// paddedJSON is a deployment with so many bytes of padding in its template.
func paddedJSON(namespace, name string, rv, size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":%q,"name":%q,"uid":"u-%s","resourceVersion":"%d",`+
		`"managedFields":[{"manager":"kubectl"}]},"spec":{"replicas":0,"template":{"pad":%q}}}`,
		namespace, name, name, rv, padding(size, uint64(rv)))
}

// boundedStore is a store with a budget, and the intake that fills it.
func boundedStore(t interface{ Helper() }, l *quota, keep func(string) Detail) (*store, intake) {
	t.Helper()
	s := newStore(deployments, func() time.Time { return epoch }, l, func(Key) {}, func(Key) {}, func(schema.GroupVersionKind) {})
	return s, intake{keep: keep, arrive: func(o *Object) { l.admitObject(s, o) }}
}

func take(t *testing.T, in intake, raw []byte) *Object {
	t.Helper()
	o, _, err := in.take(raw, deployments)
	must(t, err)
	return o
}

// contentOf sums up the content that objects really hold.
func contentOf(objects ...*Object) (sum int64) {
	for _, o := range objects {
		sum += o.ContentBytes()
	}
	return sum
}

// M4 of the guard's review: one tenant's padded objects filled the assessor's memory.
func TestPaddedObjectsOfOneTenantDoNotFillTheMemory(t *testing.T) {
	const budget, size = 1 << 20, 96 << 10
	l := newQuota(budget)
	s, in := boundedStore(t, l, whole)
	var body strings.Builder
	body.WriteString(`{"metadata":{"resourceVersion":"100"},"items":[`)
	for i := range 40 {
		body.Write(paddedJSON("padded", fmt.Sprint("web-", i), i+1, size))
		body.WriteString(",")
	}
	body.Write(paddedJSON("shop", "web", 90, 2<<10))
	body.WriteString("]}")
	list, err := decodeList(strings.NewReader(body.String()), deployments, in)
	must(t, err)
	var items []any
	var read int64
	for i := range list.Items {
		items = append(items, &list.Items[i])
		read += contentOf(&list.Items[i])
	}
	if read > budget || l.size() > budget {
		t.Errorf("before the store has them, %d bytes of content are in memory, %d are accounted for", read, l.size())
	}
	must(t, s.Replace(items, "100"))
	var kept []*Object
	partial := 0
	for _, id := range s.ids() {
		o := s.view(id).Current
		if kept = append(kept, o); o.Partial() {
			partial++
			if o.UID == "" || o.FullHash == "" {
				t.Errorf("it is not known which version of %s there is", o.Name)
			}
			if _, err := o.Body(); !errors.Is(err, ErrNotKept) {
				t.Errorf("the body of a partial object is read: %v", err)
			}
		}
	}
	if sum := contentOf(kept...); sum > budget || partial < 25 || partial == 40 {
		t.Errorf("%d bytes are kept, %d objects are partial", sum, partial)
	}
	if s.view(web).Current.Partial() {
		t.Error("a small namespace has lost content to a large one")
	}
	for i := range MaxPending + 10 { // one object that is written all the time
		must(t, s.Update(take(t, in, paddedJSON("padded", "web-0", 200+i, size))))
		if l.size() > budget {
			t.Fatalf("after %d writes %d bytes are kept", i+1, l.size())
		}
	}
	if s.view(web).Current.Partial() {
		t.Error("a small namespace has lost content to an object that is written all the time")
	}
}

func TestTheBudgetSpansAllKinds(t *testing.T) {
	l := newQuota(300 << 10)
	a, in := boundedStore(t, l, whole)
	b, other := boundedStore(t, l, whole)
	must(t, a.Replace([]any{take(t, in, paddedJSON("padded", "a", 1, 200<<10))}, "1"))
	must(t, b.Replace([]any{take(t, other, paddedJSON("padded", "b", 2, 250<<10))}, "2"))
	if l.size() > 300<<10 {
		t.Errorf("two kinds keep %d bytes", l.size())
	}
	l.forget(a)
	l.forget(b)
	must(t, a.Update(take(t, in, paddedJSON("padded", "a", 3, 200<<10)))) // its watch has not ended yet
	if l.size() != 0 || len(l.namespaces) != 0 {
		t.Errorf("%d bytes are accounted for after the kinds are forgotten", l.size())
	}
}

func TestNoContentIsKeptOfWhatNoGuardCovers(t *testing.T) {
	l := newQuota(0)
	covered := true
	s, in := boundedStore(t, l, func(string) Detail {
		if covered {
			return DetailWhole
		}
		return DetailMetadata
	})
	covered = false
	must(t, s.Replace([]any{take(t, in, paddedJSON("shop", "web", 1, 1000))}, "1"))
	if o := s.view(web).Current; !o.Partial() || o.ContentBytes() > 0 || o.FullHash == "" {
		t.Errorf("kept are %d bytes, hash %q", o.ContentBytes(), o.FullHash)
	}
	covered = true
	must(t, s.Update(take(t, in, paddedJSON("shop", "web", 2, 1000))))
	if s.view(web).Current.Partial() {
		t.Error("the content of a guarded object is not kept")
	}
	covered = false
	s.releaseContent(in.keep)
	if v := s.view(web); v.Current.ContentBytes() > 0 || len(v.Pending) != 1 {
		t.Errorf("content stays after the guard is gone: %+v", v)
	}
	var r Retained
	s.countPartial(&r, in.keep)
	covered = true
	s.countPartial(&r, in.keep)
	if diff := cmp.Diff(Retained{Unguarded: 1, Dropped: 1}, r); diff != "" {
		t.Error(diff)
	}
}

func TestAPartialVersionAndItsWholeAreNoTransition(t *testing.T) {
	l := newQuota(0)
	detail := DetailMetadata
	s, in := boundedStore(t, l, func(string) Detail { return detail })
	raw := paddedJSON("shop", "web", 1, 1000)
	must(t, s.Replace([]any{take(t, in, raw)}, "1"))
	detail = DetailWhole
	must(t, s.Replace([]any{take(t, in, raw)}, "5"))
	if v := s.view(web); len(v.Pending) != 0 || v.Current.Partial() {
		t.Errorf("after a list of the same version: %v, partial %t", toldAll(v), v.Current.Partial())
	}
	detail = DetailMetadata
	must(t, s.Replace([]any{take(t, in, raw)}, "6"))
	if v := s.view(web); len(v.Pending) != 0 || !v.Current.Partial() {
		t.Errorf("after a list without content: %v, partial %t", toldAll(v), v.Current.Partial())
	}
}

func TestSettlingIsByVersionWhateverIsKept(t *testing.T) {
	l := newQuota(0)
	s, in := boundedStore(t, l, whole)
	must(t, s.Replace([]any{take(t, in, paddedJSON("shop", "web", 1, 100))}, "1"))
	must(t, s.Update(take(t, in, paddedJSON("shop", "web", 2, 100))))
	seen := s.view(web).Pending
	live, err := Decode(paddedJSON("shop", "web", 2, 100), deployments)
	must(t, err)
	l.releaseContent(s.place(web))
	s.restoreContent(web, live) // puts another Object in the place of the one that was handed out
	must(t, s.Update(take(t, in, paddedJSON("shop", "web", 3, 100))))
	seen[0].Next = live
	s.settle(web, seen)
	v := s.view(web)
	if len(v.Pending) != 1 || !v.Pending[0].Contiguous || v.Pending[0].Prev.ResourceVersion != "2" || v.Pending[0].Next.ResourceVersion != "3" {
		t.Errorf("the transitions that are left are %v", toldAll(v))
	}
}

func TestContentIsRestoredOnlyWhereThereIsRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		budget int64
		read   []byte
		want   bool
	}{
		"without a bound":         {read: paddedJSON("shop", "web", 1, 1000), want: true},
		"with room":               {budget: 1 << 20, read: paddedJSON("shop", "web", 1, 1000), want: true},
		"without room":            {budget: 1100, read: paddedJSON("shop", "web", 1, 1000)},
		"another version":         {read: paddedJSON("shop", "web", 2, 1000)},
		"an object made anew":     {read: []byte(strings.Replace(string(paddedJSON("shop", "web", 1, 1000)), "u-web", "u-new", 1))},
		"other content meanwhile": {read: paddedJSON("shop", "web", 1, 1001)},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := boundedStore(t, newQuota(tc.budget), func(string) Detail { return DetailMetadata })
			must(t, s.Replace([]any{take(t, in, paddedJSON("shop", "web", 1, 1000))}, "1"))
			live, err := Decode(tc.read, deployments)
			must(t, err)
			s.restoreContent(web, live)
			if got := !s.view(web).Current.Partial(); got != tc.want {
				t.Errorf("the content is restored: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatNeverCameToTheStoreIsForgotten(t *testing.T) {
	l := newQuota(0)
	s, in := boundedStore(t, l, whole)
	take(t, in, paddedJSON("shop", "web", 1, 1000))
	if l.size() == 0 {
		t.Error("an object on its way counts for nothing")
	}
	l.resetArrivals(s)
	if l.size() != 0 {
		t.Errorf("%d bytes of a list that failed are accounted for", l.size())
	}
}

// TestTheQuotaIsExact runs random lives of a few objects past a store without a bound, and
// sums up what the store really holds.
func TestTheQuotaIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newQuota(0)
		s, in := boundedStore(t, l, whole)
		_ = s.Replace(nil, "0")
		for rv := range rapid.IntRange(1, 90).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			id := nsName{"shop", name}
			content := rapid.IntRange(1, 3).Draw(t, "content")
			o, _, err := in.take(fmt.Appendf(nil, `{"metadata":{"namespace":"shop","name":%q,"uid":"u","resourceVersion":"%d"},"spec":{"x":%d}}`, name, rv+1, content), deployments)
			if err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				_ = s.Delete(o)
			case 1:
				pending := s.view(id).Pending
				s.settle(id, pending[:rapid.IntRange(0, len(pending)).Draw(t, "settled")])
				l.landObject(s, o)
			case 2:
				_ = s.Replace([]any{o}, fmt.Sprint(rv+1))
			default:
				_ = s.Update(o)
			}
		}
		objects, blobs := map[*Object]bool{}, map[*blob]bool{}
		for _, e := range s.objects {
			objects[e.current] = true
			for _, p := range e.pending {
				objects[p.Prev], objects[p.Next] = true, true
			}
		}
		delete(objects, nil)
		var want int64
		for o := range objects {
			h := o.holding()
			want += h.fixed
			for _, b := range h.blobs {
				blobs[b] = true
			}
		}
		for b := range blobs {
			want += b.size()
		}
		if got := l.size(); got != want {
			t.Fatalf("%d bytes are accounted for, the store holds %d", got, want)
		}
	})
}

func TestMetadataBeyondTheBoundsIsNotKept(t *testing.T) {
	many := map[string]string{}
	for i := range MaxLabels + 1 {
		many[fmt.Sprint("l", i)] = "v"
	}
	owners := make([]metav1.OwnerReference, 12000)
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint(i), UID: "u"}
	}
	owners[11999] = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "r", Controller: new(true)}
	large := func() *Object {
		return &Object{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"a": strings.Repeat("x", MaxLabelBytes)}, OwnerReferences: owners, Finalizers: make([]string, 9000),
			Annotations: map[string]string{
				"plumbline.dev/writer": "ci", "plumbline.dev/writer-groups": strings.Repeat("g", maxStampBytes+1), "plumbline.dev/other": "x",
				"meta.helm.sh/release-name": strings.Repeat("n", MaxPackageAnnotationBytes+1), "meta.helm.sh/release-namespace": "shop",
				"argocd.argoproj.io/tracking-id": strings.Repeat("t", maxStampBytes+1),
			},
		}}
	}
	o := large()
	o.boundMetadata()
	if !o.LabelsDropped || o.Labels != nil || o.Finalizers != nil || o.holding().fixed > 4<<10 {
		t.Errorf("kept are %d labels, %d finalizers, %d bytes", len(o.Labels), len(o.Finalizers), o.holding().fixed)
	}
	if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Kind != "ReplicaSet" || !isController(o.OwnerReferences[0]) {
		t.Errorf("the owners are %+v", o.OwnerReferences)
	}
	want := map[string]string{
		"plumbline.dev/writer": "ci", "meta.helm.sh/release-namespace": "shop", "argocd.argoproj.io/tracking-id": strings.Repeat("t", maxTextBytes),
	}
	if diff := cmp.Diff(want, o.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	same, other := large(), large()
	other.Labels["b"] = "new"
	same.boundMetadata()
	other.boundMetadata()
	if !o.sameContent(same) || o.sameContent(other) {
		t.Error("two versions cannot be told apart by labels that are not kept")
	}
	small := &Object{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, OwnerReferences: owners[:MaxOwners]}}
	small.boundMetadata()
	if small.LabelsDropped || len(small.Labels) != 1 || len(small.OwnerReferences) != MaxOwners {
		t.Errorf("metadata within the bounds is dropped: %+v", small.ObjectMeta)
	}
	if !FitsLabels(map[string]string{}) || FitsLabels(many) {
		t.Error("the number of labels is not bounded")
	}
}

func TestComplete(t *testing.T) {
	decoded := func(rv int, raw string) *Object {
		o, err := Decode(fmt.Appendf(nil, raw, rv), deployments)
		must(t, err)
		return o
	}
	const raw = `{"metadata":{"namespace":"shop","name":"web","uid":"u","resourceVersion":"%d","labels":{"a":"b"},"managedFields":[{"manager":"m"}]},"spec":{"x":1}}`
	partial := func(change func(*Object)) *Object {
		o := decoded(5, raw)
		o.body, o.managed = nil, nil
		if change != nil {
			change(o)
		}
		return o
	}
	dropped := func(o *Object) { o.digest = digestMetadata(o.Labels, nil); o.Labels, o.LabelsDropped = nil, true }
	for name, tc := range map[string]struct {
		kept, live    *Object
		want, managed bool
	}{
		"the very version":                             {kept: partial(nil), live: decoded(5, raw), want: true, managed: true},
		"a newer version of equal content":             {kept: partial(nil), live: decoded(6, raw), want: true},
		"a newer version of other content":             {kept: partial(nil), live: decoded(6, strings.Replace(raw, `"x":1`, `"x":2`, 1))},
		"another object":                               {kept: partial(nil), live: decoded(5, strings.Replace(raw, `"uid":"u"`, `"uid":"v"`, 1))},
		"an absent object":                             {kept: partial(nil)},
		"dropped labels that a newer version has, too": {kept: partial(dropped), live: decoded(6, raw), want: true},
		"dropped labels that a newer version has not":  {kept: partial(dropped), live: decoded(6, strings.Replace(raw, `"a":"b"`, `"a":"c"`, 1))},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.kept.Complete(tc.live)
			if (got != nil) != tc.want {
				t.Fatalf("completed: %t, want %t", got != nil, tc.want)
			}
			if got == nil {
				return
			}
			if got.Partial() || got.LabelsDropped || got.Labels["a"] != "b" || got.ResourceVersion != "5" || (got.managed != nil) != tc.managed {
				t.Errorf("it is %+v", got)
			}
		})
	}
}
