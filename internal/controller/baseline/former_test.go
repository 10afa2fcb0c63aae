// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// failingReader fails to read one name.
type failingReader struct {
	client.Reader
	name string
	err  error
}

func (f failingReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if key.Name == f.name {
		return f.err
	}
	return f.Reader.Get(ctx, key, o, opts...)
}

// imageBody is a Deployment with an image, padded to a size.
func imageBody(image string, padding int) []byte {
	return fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"image":%q,"name":"app"}]},"metadata":{"annotations":{"pad":%q}}}}}`, image, strings.Repeat("x", padding))
}

// historyOf has a Baseline whose revision number is authorized, and stores the bodies of
// revisions by their numbers.
func historyOf(t *testing.T, number int64, bodies map[int64][]byte) (*Reconciler, *subject) {
	t.Helper()
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web", UID: "b"}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	r := reconcilerOn(t, b)
	s := &subject{key: webKey, resource: kube.Resource{Plural: "deployments"}, baseline: b}
	for n, body := range bodies {
		if err := r.storeRevision(t.Context(), s, specguard.AuthorizeRevision{Number: n, Hash: "pl1:h", Body: body, At: epoch}); err != nil {
			t.Fatal(err)
		}
	}
	s.state = specguard.FromBaseline(b, bodies[number])
	s.state.Authorized = &v1alpha1.AuthorizedState{Number: number, Revision: specguard.RevisionName(b.Name, number)}
	return r, s
}

func TestWhichFormerBodiesAreLoaded(t *testing.T) {
	errTimeout := errors.New("timeout")
	numbered := func(numbers ...int64) map[int64][]byte {
		bodies := map[int64][]byte{}
		for _, n := range numbers {
			bodies[n] = imageBody(fmt.Sprint("web:", n), 1)
		}
		return bodies
	}
	tests := map[string]struct {
		number  int64
		bodies  map[int64][]byte
		change  func(*Reconciler, *subject)
		pending []specguard.AuthorizeRevision
		want    []int64
		wantErr error
	}{
		"the first has none before":                   {number: 1, bodies: numbered(1)},
		"those before, newest first":                  {number: 3, bodies: numbered(1, 2, 3), want: []int64{2, 1}},
		"those that are not kept any more are absent": {number: 9, bodies: numbered(8, 9), want: []int64{8}},
		"older ones are not asked for":                {number: 9, bodies: numbered(2, 8, 9), want: []int64{8}},
		"the one last seen ready is": {number: 9, bodies: numbered(2, 8, 9), change: func(_ *Reconciler, s *subject) {
			s.baseline.Status.LastReady = &v1alpha1.ReadyRevision{Revision: specguard.RevisionName(s.baseline.Name, 2)}
		}, want: []int64{8, 2}},
		"and not twice": {number: 3, bodies: numbered(2, 3), change: func(_ *Reconciler, s *subject) {
			s.baseline.Status.LastReady = &v1alpha1.ReadyRevision{Revision: specguard.RevisionName(s.baseline.Name, 2)}
		}, want: []int64{2}},
		"revisions of this decision": {number: 3, bodies: numbered(1), pending: []specguard.AuthorizeRevision{
			{Number: 2, Body: imageBody("web:2", 1)}, {Number: 3, Body: imageBody("web:3", 1)},
		}, want: []int64{2, 1}},
		"the newest that is kept, under one that is not": {number: 2, bodies: numbered(1, 2), change: func(_ *Reconciler, s *subject) {
			s.state.Oversized = &v1alpha1.OversizedBody{Hash: "pl1:o"}
		}, want: []int64{2, 1}},
		"a revision that cannot be read is an error": {number: 3, bodies: numbered(1, 2, 3), change: func(r *Reconciler, s *subject) {
			r.Live = failingReader{r.Live, specguard.RevisionName(s.baseline.Name, 1), errTimeout}
		}, wantErr: errTimeout},
		"a revision of an earlier Baseline vouches for nothing": {number: 3, bodies: numbered(1, 2, 3), change: func(_ *Reconciler, s *subject) {
			s.baseline.UID = "anew"
		}},
		"a damaged one vouches for nothing": {number: 3, bodies: numbered(1, 3), change: func(r *Reconciler, s *subject) {
			damaged := newRevision(s.baseline, specguard.AuthorizeRevision{Number: 2, Hash: "pl1:h", At: epoch})
			damaged.Spec.Body = []byte("no zstd")
			if err := r.Client.Create(t.Context(), damaged); err != nil {
				t.Fatal(err)
			}
		}, want: []int64{1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, s := historyOf(t, tc.number, tc.bodies)
			if tc.change != nil {
				tc.change(r, s)
			}
			got, err := r.loadFormer(t.Context(), s, s.state, tc.pending)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("it returns %v, want %v", err, tc.wantErr)
			}
			want := specguard.Former{Loaded: tc.wantErr == nil}
			for _, n := range tc.want {
				want.Bodies = append(want.Bodies, imageBody(fmt.Sprint("web:", n), 1))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("former bodies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheBytesOfFormerBodiesAreBounded(t *testing.T) {
	const padding = kube.MaxBodySize - 1<<10
	r, s := historyOf(t, 4, map[int64][]byte{
		3: imageBody("web:3", padding), 2: imageBody("web:2", padding), 1: imageBody("web:1", padding),
	})
	s.baseline.Status.LastReady = &v1alpha1.ReadyRevision{Revision: specguard.RevisionName(s.baseline.Name, 1)}
	got, err := r.loadFormer(t.Context(), s, s.state, nil)
	if err != nil || !got.Loaded || len(got.Bodies) != 2 {
		t.Errorf("%d bodies are loaded: %v", len(got.Bodies), err)
	}
}

// A revision that cannot be read may be the one that vouches: nothing is decided.
func TestAnUndoIsDecidedOnceItsHistoryIsRead(t *testing.T) {
	errTimeout := errors.New("timeout")
	for name, tc := range map[string]struct {
		image   string
		fails   bool
		want    v1alpha1.DriftState
		wantErr error
	}{
		"to what was authorized":  {image: "web:1", want: v1alpha1.StateInSync},
		"to another template":     {image: "evil:1", want: v1alpha1.StateDrifted},
		"while the history fails": {image: "web:1", fails: true, wantErr: errTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := historyOf(t, 2, map[int64][]byte{1: imageBody("web:1", 1), 2: imageBody("web:2", 1)})
			if tc.fails {
				r.Live = failingReader{r.Live, specguard.RevisionName(s.baseline.Name, 1), errTimeout}
			}
			in := undoInput(t, s.state, imageBody("web:2", 1), imageBody(tc.image, 1))
			result, err := r.step(t.Context(), s, in, nil)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("it returns %v, want %v", err, tc.wantErr)
			}
			if err == nil && result.State.Drift != tc.want {
				t.Errorf("it is %s, want %s", result.State.Drift, tc.want)
			}
		})
	}
}

// undoInput observes that CI wrote a body over another one, with the field manager of
// kubectl rollout undo.
func undoInput(t *testing.T, state specguard.State, before, after []byte) specguard.Input {
	t.Helper()
	const ci = "system:serviceaccount:ci:deployer"
	gvk := canon.ParseGVK("apps/v1", "Deployment")
	g, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "shop"}, v1alpha1.GuardSpec{
		Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		TrustedWriters: v1alpha1.Writers{Users: []string{ci}},
	}, nil, epoch.Add(-time.Hour))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := specguard.NewGuardSet([]*specguard.Guard{g}, nil, specguard.System{}).Rules(specguard.Query{Namespace: "shop", GVK: gvk, Now: epoch})
	doc, err := canon.Parse(before, gvk)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := specguard.GuardedHash(before, gvk, rules)
	if err != nil {
		t.Fatal(err)
	}
	state.Body = doc.AppendCanonical(nil)
	state.Authorized.Hash, state.Drift = string(hash), v1alpha1.StateInSync
	state.Observed = v1alpha1.ObservedState{UID: "u", Hash: string(hash), FullHash: string(doc.Hash()), Generation: 2, ResourceVersion: "2", StampPolicy: "p"}
	at := metav1.NewTime(epoch)
	return specguard.Input{
		State: state, Rules: rules, Now: epoch,
		Stamps: specguard.Stamps{Policy: "p", Written: true},
		Observation: specguard.Present{
			UID: "u", Prev: &specguard.Version{Body: before, ResourceVersion: "2", Generation: 2, Writer: ci},
			Version: specguard.Version{
				Body: after, ResourceVersion: "3", Generation: 3, Writer: ci,
				Managers: []metav1.ManagedFieldsEntry{{
					Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &at,
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`),
				}},
			},
		},
	}
}
