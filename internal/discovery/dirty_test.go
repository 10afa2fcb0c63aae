// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// told is a cluster whose watches tell of each change, and of nothing else.
type told struct {
	t        *rapid.T
	s        *sources
	shelf    *shelf
	handlers map[reflect.Type]toolscache.ResourceEventHandler
	dirty    dirty
	step     int
}

func newTold(t *rapid.T) *told {
	w := &told{t: t, shelf: newShelf(), handlers: map[reflect.Type]toolscache.ResourceEventHandler{}}
	w.s = w.sources()
	changed := func(_ Haste, d dirty) { w.dirty = w.dirty.with(d) }
	ended := endings{gone: func(string) {}, rescoped: func(string) {}}
	for object, handler := range w.s.handlers(t.Context(), changed, ended) {
		w.handlers[reflect.TypeOf(object)] = handler
	}
	for _, k := range w.s.kindsThat(changed) {
		w.handlers[reflect.TypeOf(k.object)] = k.handler
	}
	return w
}

func (w *told) sources() *sources {
	return &sources{
		cache: w.shelf, live: w.shelf, clock: clocktesting.NewFakeClock(begin), log: logr.Discard(), namespace: "plumbline",
		kinds: map[string]bool{releaseKind: true, baselineKind: true}, numbers: newNumbers(),
		grants: []ir.Grant{{Namespaces: labels.SelectorFromSet(labels.Set{"team": "a"}), Domains: []string{"*.example.com"}}},
	}
}

// put an object in place of the one that has its name.
func (w *told) put(object client.Object) {
	w.step++
	object.SetUID(types.UID(fmt.Sprint(w.step / 7))) // now and then another one has a name
	store, handler := w.shelf.stores[reflect.TypeOf(object)], w.handlers[reflect.TypeOf(object)]
	was, there, err := store.Get(object)
	if err == nil {
		err = store.Update(object)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if there {
		handler.OnUpdate(was, object)
	} else {
		handler.OnAdd(object, false)
	}
}

// drop an object, if it is there.
func (w *told) drop(object client.Object) {
	store, handler := w.shelf.stores[reflect.TypeOf(object)], w.handlers[reflect.TypeOf(object)]
	was, there, err := store.Get(object)
	if err == nil && there {
		err = store.Delete(was)
		handler.OnDelete(was)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *told) draw(from ...string) string { return rapid.SampledFrom(from).Draw(w.t, "which") }
func (w *told) bool() bool                 { return rapid.Bool().Draw(w.t, "is") }

// object that is drawn, of whatever kind.
func (w *told) object() client.Object {
	namespace := w.draw("bank", "shop")
	age := rapid.IntRange(0, 3).Draw(w.t, "age")
	service := func() string { return w.draw("web0", "web1", "web2") }
	switch w.draw("Service", "EndpointSlice", "Pod", "Pod", "Node", "Namespace", "ABRelease", "Baseline", "ConfigMap") {
	case "Service":
		return w.service(at(namespace, service(), age))
	case "EndpointSlice":
		s := &discoveryv1.EndpointSlice{ObjectMeta: at(namespace, w.draw("a", "b"), 0), AddressType: discoveryv1.AddressTypeIPv4}
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service()}
		s.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
		pod := w.draw("1", "2", "3")
		s.Endpoints = []discoveryv1.Endpoint{{
			Addresses: []string{"10.1.0." + pod}, NodeName: new(w.draw("n1", "n2")), TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p" + pod},
			Conditions: discoveryv1.EndpointConditions{Ready: new(w.bool())},
		}}
		return s
	case "Pod":
		return w.pod(namespace)
	case "Node":
		n := &corev1.Node{ObjectMeta: at("", w.draw("n1", "n2"), 0)}
		n.Labels = map[string]string{corev1.LabelTopologyZone: w.draw("a", "b"), "other": w.draw("a", "b")}
		return n
	case "Namespace":
		n := &corev1.Namespace{ObjectMeta: at("", namespace, 0)}
		n.Labels, n.Annotations = map[string]string{"team": w.draw("a", "b")}, map[string]string{}
		if w.bool() {
			n.Annotations[ir.ExportToAnnotation] = w.draw("*", "shop", "no name!")
		}
		return n
	case "ABRelease":
		return w.release(at(namespace, w.draw("first", "second"), age), service)
	case "Baseline":
		b := &v1alpha1.Baseline{ObjectMeta: at(namespace, w.draw("x", "y"), 0)}
		if w.bool() {
			b.Spec.Target.Kind, b.Spec.Target.Name = "Deployment", w.draw("stable", "canary")
			b.Status.Quarantine = &v1alpha1.Quarantine{}
		}
		return b
	default:
		return w.ledger(func() types.NamespacedName { return types.NamespacedName{Namespace: namespace, Name: service()} })
	}
}

// ledger of two entries that are drawn, or the one that was read without an entry that was dropped.
func (w *told) ledger(service func() types.NamespacedName) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: at("plumbline", release.LedgerName, 0)}
	entries := map[string]release.Entry{}
	if w.bool() {
		maps.Copy(entries, w.s.numbers.entries)
		release.Drop(entries, []types.NamespacedName{service()})
	} else {
		for range 2 {
			e := release.Entry{Plain: uint64(w.step)} //nolint:gosec // a few
			if w.bool() {
				e.Ceiling, e.Release, e.Holder = e.Plain+5, "first", w.draw("0", "1", "2")
			}
			entries[release.EntryKey(service())] = e
		}
	}
	m.Data = release.FormatEntries(entries)
	return m
}

func (w *told) service(meta metav1.ObjectMeta) *corev1.Service {
	s := clusterService(meta, fmt.Sprint("10.0.0.", w.draw("1", "2", "3", "4", "5")))
	s.Labels, s.Annotations = map[string]string{ir.Managed: w.draw("true", "true", "false")}, map[string]string{}
	if w.bool() {
		s.Annotations[ir.HostsAnnotation] = w.draw("a.example.com", "b.example.com, a.example.com", "c.example.org")
	}
	if w.bool() {
		s.Annotations[ir.ExportToAnnotation] = w.draw("*", "no name!")
	}
	return s
}

func (w *told) pod(namespace string) *corev1.Pod {
	i, workload := w.draw("1", "2", "3"), w.draw("stable", "canary")
	p := podThat(func(p *corev1.Pod) {
		p.Namespace, p.Name, p.Labels = namespace, "p"+i, map[string]string{"v": workload}
	})
	p.Labels["pod-template-hash"] = "1"
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: workload + "-1", Controller: new(true)}}
	p.Spec.NodeName = w.draw("n1", "n2")
	p.Status.PodIPs[0].IP = "10.1.0." + w.draw(i, "3")
	switch w.draw("ready", "unready", "ending", "over") {
	case "unready":
		unready(p)
	case "ending":
		ending(p)
	case "over":
		p.Status.Phase = corev1.PodSucceeded
	}
	if w.bool() {
		p.Annotations = map[string]string{inject.AnnotationLocalPorts: "8001=web0"}
	}
	return p
}

func (w *told) release(meta metav1.ObjectMeta, service func() string) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: meta}
	r.Spec.ServiceName = service()
	if w.draw("yes", "yes", "no") == "yes" {
		workload := func(name string) *v1alpha1.VariationWorkload {
			return &v1alpha1.VariationWorkload{Kind: "Deployment", Name: name}
		}
		weight := rapid.Int32Range(0, 10_000).Draw(w.t, "weight")
		r.Status.Effective = &v1alpha1.EffectiveSplit{
			Sequence: int64(w.step), ServiceName: service(), Generation: 1, Salt: "s", Key: v1alpha1.SplitKey{Type: v1alpha1.SplitKeyPerRequest}, Variations: []v1alpha1.EffectiveVariation{
				{Name: "stable", Workload: workload("stable"), Weight: new(10_000 - weight), Reserved: new(int32(0))},
				{Name: "canary", Workload: workload("canary"), Weight: new(weight), Reserved: new(int32(10_000))},
			},
		}
	}
	return r
}

// lookAt builds anew what is dirty.
func lookAt(t *rapid.T, s *sources, d dirty, memory *ir.Memory) ir.Change {
	names, err := s.names(t.Context(), d, memory)
	if err != nil {
		t.Fatal(err)
	}
	names, in, err := s.inputs(t.Context(), names, memory)
	if err != nil {
		t.Fatal(err)
	}
	return memory.Rebuild(names, in)
}

// meshOf parts.
func meshOf(parts map[types.NamespacedName]ir.Part, sequence uint64) ir.Mesh {
	m := ir.Mesh{Sequence: sequence}
	for _, p := range parts {
		if p.Service != nil {
			m.Services = append(m.Services, *p.Service)
		}
		m.Problems = append(m.Problems, p.Problems...)
	}
	slices.SortFunc(m.Services, func(a, b ir.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.Problems, func(a, b ir.Problem) int { return cmp.Compare(a.String(), b.String()) })
	return m
}

// M5 of the review of the mesh: whatever watches tell of, and however many changes a look takes
// together, what they call dirty is all that has changed of the mesh.
func TestWhatIsDirtyIsAllThatHasChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTold(t)
		var memory ir.Memory
		parts := map[types.NamespacedName]ir.Part{}
		w.dirty = dirty{everything: true}
		for range rapid.IntRange(5, 20).Draw(t, "looks") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				if object := w.object(); w.draw("put", "put", "put", "drop") == "put" {
					w.put(object)
				} else {
					w.drop(object)
				}
			}
			twin := w.sources()
			// What was published does not go back, nor does what has ended come back; what was dropped is told
			// by what was known.
			twin.numbers.highest, twin.numbers.gone = maps.Clone(w.s.numbers.highest), maps.Clone(w.s.numbers.gone)
			twin.numbers.entries = maps.Clone(w.s.numbers.entries)
			d := w.dirty
			w.dirty = dirty{}
			change := lookAt(t, w.s, d, &memory)
			maps.Copy(parts, change.Parts)
			whole := lookAt(t, twin, dirty{everything: true}, &ir.Memory{})
			want, got := meshOf(whole.Parts, whole.Sequence), meshOf(parts, change.Sequence)
			if diff := gocmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("dirty was %+v (-made anew +kept):\n%s", d, diff)
			}
		}
	})
}

// A Service that changes, a pod of a split and a namespace concern few Services.
func TestFewServicesAreDirty(t *testing.T) {
	name := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	managed := func(namespace, name, ip string) client.Object {
		s := clusterService(at(namespace, name, 0), ip)
		s.Labels = map[string]string{ir.Managed: "true"}
		return s
	}
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: at("shop", "pay-1", 0), AddressType: discoveryv1.AddressTypeIPv4}
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "pay"}
	endpoints.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
	endpoints.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, NodeName: new("n1")}}
	s := sourcesOf(t, managed("shop", "web", "10.0.0.1"), managed("shop", "pay", "10.0.0.2"), managed("bank", "web", "10.0.0.3"), inForce(1), endpoints)
	var memory ir.Memory
	names, err := s.names(t.Context(), dirty{everything: true}, &memory)
	if err != nil {
		t.Fatal(err)
	}
	names, in, err := s.inputs(t.Context(), names, &memory)
	if err != nil || len(in.Services) != 3 {
		t.Fatalf("%d Services, %v", len(in.Services), err)
	}
	memory.Rebuild(names, in)
	for text, tc := range map[string]struct {
		dirty dirty
		want  ir.Names
	}{
		"nothing":                              {dirty{}, ir.Names{}},
		"a Service":                            {dirtyService("shop", "pay"), ir.Names{name("shop", "pay"): true}},
		"a pod, those that are split":          {dirty{pods: map[string]bool{"shop": true}}, ir.Names{name("shop", "web"): true}},
		"a namespace, all of its own":          {dirty{namespaces: map[string]bool{"bank": true}}, ir.Names{name("bank", "web"): true, name("bank", ""): true}},
		"a node, those with an endpoint on it": {dirty{nodes: map[string]bool{"n1": true}}, ir.Names{name("shop", "pay"): true}},
		"a node without endpoints":             {dirty{nodes: map[string]bool{"n2": true}}, ir.Names{}},
		"an address without a host":            {dirty{addresses: map[netip.Addr]bool{netip.MustParseAddr("10.1.0.1"): true}}, ir.Names{}},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := s.names(t.Context(), tc.dirty, &memory)
			if err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("%v are dirty, want %v; %v", got, tc.want, err)
			}
		})
	}
}

// A release that ended within the time for which changes of the ledger are collected had the sequence
// of the ledger before, and its routes went back to another content under the same sequence.
func TestADecisionIsLookedAtWithTheLedgerOfThatMoment(t *testing.T) {
	ledger := &corev1.ConfigMap{ObjectMeta: at("plumbline", release.LedgerName, 0)}
	s := sourcesOf(t, ledger)
	s.namespace = "plumbline"
	sequence := func() uint64 {
		names, err := s.names(t.Context(), dirtyService("shop", "web"), &ir.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		in, err := s.about(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		return in.Sequences[types.NamespacedName{Namespace: "shop", Name: "web"}]
	}
	if n := sequence(); n != 0 {
		t.Errorf("without an entry it has sequence %d", n)
	}
	ledger.Data = release.FormatEntries(map[string]release.Entry{"shop.web": {Plain: 5, Ceiling: 1005, Release: "web", Holder: "gone"}})
	if err := s.live.(client.Client).Update(t.Context(), ledger); err != nil { //nolint:forcetypeassert // it is the fake one
		t.Fatal(err)
	}
	if n := sequence(); n != 1005 {
		t.Errorf("it has sequence %d, want the ceiling of the ledger", n)
	}
}

// A gateway's route has the sum of all sequences. It does not fall when an entry is dropped.
func TestTheSumOfSequencesStaysWhenAnEntryIsDropped(t *testing.T) {
	entries := map[string]release.Entry{"shop.web": {Plain: 3000}, "shop.pay": {Plain: 1000}}
	ledger := &corev1.ConfigMap{ObjectMeta: at("plumbline", release.LedgerName, 0), Data: release.FormatEntries(entries)}
	s := sourcesOf(t, ledger)
	s.namespace = "plumbline"
	var memory ir.Memory
	look := func(d dirty) uint64 {
		names, err := s.names(t.Context(), d, &memory)
		if err != nil {
			t.Fatal(err)
		}
		names, in, err := s.inputs(t.Context(), names, &memory)
		if err != nil {
			t.Fatal(err)
		}
		return memory.Rebuild(names, in).Sequence
	}
	if sum := look(dirty{everything: true}); sum != 4000 {
		t.Fatalf("the sum is %d at first, want 4000", sum)
	}
	release.Drop(entries, []types.NamespacedName{{Namespace: "shop", Name: "web"}})
	ledger.Data = release.FormatEntries(entries)
	if err := s.live.(client.Client).Update(t.Context(), ledger); err != nil { //nolint:forcetypeassert // it is the fake one
		t.Fatal(err)
	}
	if sum := look(dirty{}); sum != 4000 {
		t.Errorf("the sum is %d when an entry was dropped, want 4000", sum)
	}
	if sum := look(dirty{everything: true}); sum != 4000 {
		t.Errorf("the sum is %d when all is built anew, want 4000", sum)
	}
}
