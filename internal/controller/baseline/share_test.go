// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// adopted is the Baseline of an object that was imported, as a watch decodes it.
func adopted(t testing.TB, i int) *v1alpha1.Baseline {
	t.Helper()
	name, uid, hash, at := fmt.Sprint("web-", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i), fmt.Sprintf("pl1:sha256:%064d", i), metav1.NewTime(epoch)
	labels := map[string]string{"app": name}
	b := &v1alpha1.Baseline{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Baseline"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "deployments.apps." + name, UID: "b", ResourceVersion: fmt.Sprint(100_000 + i), Generation: 2, CreationTimestamp: at,
			Labels:        map[string]string{v1alpha1.LabelTargetKind: "Deployment"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate}},
		},
		Spec: v1alpha1.BaselineSpec{
			Target:     v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorized: &v1alpha1.AuthorizedState{UID: uid, Hash: hash, Revision: name + "-1", Number: 1, AuthorizationTime: at, Origin: v1alpha1.OriginImported},
		},
		Status: v1alpha1.BaselineStatus{
			ObservedGeneration: 2, State: v1alpha1.StateInSync, LastCheckTime: &at, Guards: []string{"platform"},
			Observed: v1alpha1.ObservedState{
				UID: uid, Hash: hash, FullHash: hash, Generation: 1, ResourceVersion: fmt.Sprint(i), Writer: "system:serviceaccount:ci:deployer",
				StampPolicy: "0123456789abcdef", Metadata: &v1alpha1.ObservedMetadata{Labels: labels},
			},
			Selection: &v1alpha1.Selection{Labels: labels, Guards: []v1alpha1.SelectingGuard{{UID: "9b2f6f0e-5d0f-4b6e-9a53-3c1d8d1c7c11"}}},
		},
	}
	for _, c := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionDegraded, ConditionRecreatable} {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: c, Status: metav1.ConditionFalse, Reason: "NotMissing", Message: "the object is not missing", LastTransitionTime: at, ObservedGeneration: 2,
		})
	}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var decoded v1alpha1.Baseline
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return &decoded
}

func transform(t testing.TB, s *Sharer, b *v1alpha1.Baseline) *v1alpha1.Baseline {
	t.Helper()
	out, err := s.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	return out.(*v1alpha1.Baseline)
}

func TestSharedBaselinesSayWhatTheySaid(t *testing.T) {
	var sharer Sharer
	empty := adopted(t, 3)
	empty.Status.Selection.Labels, empty.Status.Observed.Metadata.Labels, empty.Labels = map[string]string{}, nil, nil
	bare := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b", "c": "d"}}}
	for name, b := range map[string]*v1alpha1.Baseline{
		"in sync": adopted(t, 1), "another one": adopted(t, 2), "empty labels are not absent ones": empty, "never looked at": bare,
	} {
		t.Run(name, func(t *testing.T) {
			want := b.DeepCopy()
			want.ManagedFields = nil
			if diff := cmp.Diff(want, transform(t, &sharer, b)); diff != "" {
				t.Errorf("the Baseline (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyTextsAreForgotten(t *testing.T) {
	var sharer Sharer
	for i := range 2*maxSharedTexts + 10 {
		b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i), Labels: map[string]string{"l": fmt.Sprint(i)}}}
		transform(t, &sharer, b)
		if b.Namespace != fmt.Sprint("n", i) || b.Labels["l"] != fmt.Sprint(i) || len(sharer.texts) > maxSharedTexts || len(sharer.labels) > maxSharedTexts {
			t.Fatalf("Baseline %d is in %s with %v; %d texts and %d labels are known", i, b.Namespace, b.Labels, len(sharer.texts), len(sharer.labels))
		}
	}
}

// The memory of 50,000 adopted objects was 10 KiB each.
func TestTheMemoryOfAnAdoptedObject(t *testing.T) {
	const many, bound = 4000, 3800
	var sharer Sharer
	m, kept := newMemory(), make([]*v1alpha1.Baseline, many)
	before := heap()
	for i := range kept {
		written := adopted(t, i)
		key := kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: written.Spec.Target.Name}
		m.put(key, remembered{state: specguard.FromBaseline(written, nil), written: written})
		kept[i] = transform(t, &sharer, adopted(t, i))
		m.caughtUp(key, kept[i])
	}
	each := (heap() - before) / many
	t.Logf("%d bytes of live heap for each Baseline and its state", each)
	if each > bound {
		t.Errorf("a Baseline and its state take %d bytes of live heap, more than %d", each, bound)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(m)
}

// The event of the last write comes before the write is remembered, and no other event follows: the
// written Baseline stayed in memory beside the cached one.
func TestAWriteThatTheCacheHasAlreadyIsNotRemembered(t *testing.T) {
	cached := adopted(t, 1)
	cached.ResourceVersion = ""
	r := loader(t, nil, cached)
	r.Agenda = checks.NewAgenda()
	s := &subject{key: KeyOf(cached), resource: kube.Resource{Plural: "deployments"}, now: epoch.Add(time.Hour)}
	s.baseline = &v1alpha1.Baseline{}
	if err := r.Client.Get(t.Context(), s.baselineName(), s.baseline); err != nil {
		t.Fatal(err)
	}
	d := &decision{state: specguard.FromBaseline(s.baseline, nil)}
	r.memory.caughtUp(s.key, s.baseline)
	r.settle(t.Context(), s, d)
	if got, ok := r.memory.get(s.key); !ok || got.written != nil {
		t.Errorf("remembered: %t, and the written Baseline is kept: %t", ok, got.written != nil)
	}
	s.baseline = s.baseline.DeepCopy()
	s.baseline.ResourceVersion += "0" // the cache is older
	r.settle(t.Context(), s, d)
	if got, _ := r.memory.get(s.key); got.written == nil {
		t.Error("a write that the cache does not have is forgotten")
	}
}

// The remembered state had a copy of all that its Baseline says.
func TestTheStateHasThePartsOfItsBaseline(t *testing.T) {
	m, b := newMemory(), adopted(t, 1)
	m.put(webKey, remembered{state: specguard.FromBaseline(adopted(t, 1), nil)})
	m.caughtUp(webKey, b)
	got, _ := m.get(webKey)
	if got.state.Authorized != b.Spec.Authorized || got.state.Selection != b.Status.Selection || got.state.Observed.Metadata != b.Status.Observed.Metadata {
		t.Error("the state has a copy of its own")
	}
}
