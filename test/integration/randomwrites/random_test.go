// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// The authors. CI is trusted, the scaler is expected to move replicas, and nothing else.
const (
	mallory = "mallory"
	alice   = "alice"
	scaler  = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

var authors = []string{guarded.CI, guarded.CI, mallory, mallory, alice, scaler}

// short names an author in a value, which may be a label.
func short(author string) string {
	return author[strings.LastIndex(author, ":")+1:]
}

// game is a namespace with objects of each kind, and their twins.
type game struct {
	*guarded.Namespace
	t     *testing.T
	rng   *rand.Rand
	twins []*twin
	// writes counts the requests, and makes each value another.
	writes int
	// decoy owns objects that mallory wants to pass for products of a controller.
	decoy metav1.OwnerReference
	log   []string
}

// TestRandomWritesAreFoundAndNeverLaundered is the naive twin of the whole assessor. Each
// value names its author, so that an untrusted value in an authorised body is laundered.
func TestRandomWritesAreFoundAndNeverLaundered(t *testing.T) {
	rounds := 8
	if os.Getenv(seed.Long) != "" {
		rounds = 80
	}
	const writesPerRound = 25
	g := &game{Namespace: cluster.NewNamespace(t), t: t, rng: seed.Random(t)}
	g.InstallKind("example.org", "Widget", "widgets", apiextensions.NamespaceScoped)
	startControllers(t)
	assessor := startAssessor(t)
	g.prepare()
	for round := range rounds {
		away := round%4 == 3
		if away {
			assessor.Halt(t)
		}
		for range writesPerRound {
			g.write()
		}
		if away {
			for _, w := range g.twins {
				w.vague = w.authorised != nil
			}
			assessor = startAssessor(t)
		}
		g.check()
	}
	t.Logf("%d writes to %d objects of %d kinds", g.writes, len(g.twins), len(kinds))
}

// prepare puts the guard in force, and has CI create two objects of each kind.
func (g *game) prepare() {
	g.t.Helper()
	g.Eventually("a new client can write widgets", func() error {
		u := g.object(&twin{kind: kinds[len(kinds)-1], name: "probe"}, "probe")
		return g.As(guarded.CI).Create(g.Ctx(), u, client.DryRunAll)
	})
	g.UnderGuard(guarded.ExpectAutoscaler, func(guard *v1alpha1.SpecGuard) {
		guard.Spec.Resources = nil
		for _, k := range kinds {
			guard.Spec.Resources = append(guard.Spec.Resources, v1alpha1.GuardedResource{APIVersion: k.GroupVersion().String(), Kind: k.Kind})
		}
	})
	decoy := guarded.Deployment(g.Name, "decoy")
	decoy.Spec.Replicas = new(int32(0))
	g.Must(g.As(mallory).Create(g.Ctx(), decoy))
	g.decoy = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "decoy", UID: decoy.UID, Controller: new(true)}
	for i, k := range kinds {
		for n := range 2 {
			w := &twin{kind: k, name: fmt.Sprintf("o%d-%d", i, n), trusted: map[string][]string{}}
			g.twins = append(g.twins, w)
			g.create(w, guarded.CI)
		}
	}
	g.check()
}

// object makes an object whose values name an author.
func (g *game) object(w *twin, value string) *unstructured.Unstructured {
	g.t.Helper()
	restart := ""
	if w.Kind == "CronJob" {
		restart = `"restartPolicy":"Never",`
	}
	u := &unstructured.Unstructured{}
	g.Must(json.Unmarshal([]byte(strings.NewReplacer("NAME", w.name, "VALUE", value, "RESTART", restart).Replace(w.body)), &u.Object))
	u.SetGroupVersionKind(w.GroupVersionKind)
	u.SetNamespace(g.Name)
	u.SetName(w.name)
	return u
}

func (g *game) value(author string) string {
	g.writes++
	return fmt.Sprintf("%s-%d", short(author), g.writes)
}

// read reads the object of a twin, nil when there is none.
func (g *game) read(w *twin) *unstructured.Unstructured {
	g.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.GroupVersionKind)
	err := admin.Get(g.Ctx(), client.ObjectKey{Namespace: g.Name, Name: w.name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Must(err)
	return u
}

func (g *game) note(format string, args ...any) {
	g.log = append(g.log, fmt.Sprintf("%d: ", g.writes)+fmt.Sprintf(format, args...))
}

// forge sets the annotations by which CI would be recognised.
func forge(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationWriter] = guarded.CI
	u.SetAnnotations(annotations)
}

// write makes one random request, and tells the twin.
func (g *game) write() {
	g.t.Helper()
	w, author := g.twins[g.rng.IntN(len(g.twins))], authors[g.rng.IntN(len(authors))]
	if w.live == nil {
		g.create(w, author)
		return
	}
	switch n := g.rng.IntN(20); {
	case n < 1:
		g.remove(w, author)
	case n < 3:
		g.scale(w, author)
	case n < 5:
		g.metadata(w, author)
	default:
		g.change(w, author)
	}
}

func (g *game) create(w *twin, author string) {
	g.t.Helper()
	u := g.object(w, g.value(author))
	if author != guarded.CI {
		forge(u)
	}
	g.note("%s creates %s %s", author, w.Kind, w.name)
	g.Must(g.As(author).Create(g.Ctx(), u))
	w.observeCreation(valuesOf(w.kind, u.Object), author == guarded.CI)
}

func (g *game) remove(w *twin, author string) {
	g.t.Helper()
	g.value(author)
	g.note("%s deletes %s %s", author, w.Kind, w.name)
	g.Must(g.As(author).Delete(g.Ctx(), g.read(w), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	g.Eventually("the object is gone", func() error {
		if g.read(w) != nil {
			return errors.New("it is there")
		}
		return nil
	})
	w.live = nil
}

// scale writes through the subresource, whose author no stamp names.
func (g *game) scale(w *twin, author string) {
	g.t.Helper()
	if !w.scales {
		g.change(w, author)
		return
	}
	g.value(author)
	u := g.read(w)
	// The decoy's number stays nothing, so that no controller makes pods.
	replicas := fmt.Sprint(g.rng.IntN(2))
	g.note("%s scales %s %s to %s", author, w.Kind, w.name, replicas)
	body := &unstructured.Unstructured{}
	body.SetGroupVersionKind(gvk("autoscaling/v1", "Scale"))
	g.Must(g.As(author).SubResource("scale").Patch(g.Ctx(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`)), client.WithSubResourceBody(body)))
	w.observeWrite(valuesOf(w.kind, g.read(w).Object), false)
}

// metadata writes fields that are never compared, to pass for CI or for a product.
func (g *game) metadata(w *twin, author string) {
	g.t.Helper()
	g.value(author)
	patch := map[string]any{"annotations": map[string]any{"looked-at": fmt.Sprint(g.writes), v1alpha1.AnnotationWriter: guarded.CI}}
	switch g.rng.IntN(3) {
	case 0:
		patch["labels"] = map[string]any{"team": fmt.Sprint(g.writes)}
	case 1:
		patch["ownerReferences"] = []any{g.decoy}
	case 2:
		patch["ownerReferences"] = nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": patch})
	g.Must(err)
	g.note("%s writes metadata of %s %s: %s", author, w.Kind, w.name, raw)
	g.Must(g.As(author).Patch(g.Ctx(), g.read(w), client.RawPatch(types.MergePatchType, raw)))
}

// change writes one field, or several, by a random verb.
func (g *game) change(w *twin, author string) {
	g.t.Helper()
	value := g.value(author)
	fields := w.fields
	if g.rng.IntN(3) > 0 {
		fields = []string{w.fields[g.rng.IntN(len(w.fields))]}
	}
	if author != guarded.CI && g.rng.IntN(4) == 0 { // a replay of what CI once wrote
		if old := w.trusted[fields[0]]; len(old) > 0 {
			value, fields = old[g.rng.IntN(len(old))], fields[:1]
		}
	}
	verb := g.rng.IntN(4)
	forged := author != guarded.CI && g.rng.IntN(2) == 0
	g.note("%s changes %v of %s %s to %q by verb %d", author, fields, w.Kind, w.name, value, verb)
	// A controller may write between the read and the request.
	g.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u := g.read(w)
		if u == nil {
			return fmt.Errorf("%s %s is gone", w.Kind, w.name)
		}
		before := u.DeepCopy()
		for _, field := range fields {
			put(u, field, fieldValue(field, value))
		}
		if forged {
			forge(u)
		}
		return g.request(author, verb, before, u)
	}))
	after := valuesOf(w.kind, g.read(w).Object)
	w.observeWrite(after, author == guarded.CI)
	if verb == verbApply && author == guarded.CI {
		w.observeApply(after)
	}
}

// verbApply applies the object as it was read, with the changes of the author.
const verbApply = 2

// fieldValue is a value in the form that a field has.
func fieldValue(field, value string) string {
	if strings.HasSuffix(field, "/image") && !strings.Contains(value, "/") {
		return "registry.example/" + value + ":1"
	}
	return value
}

// request writes an object by one of the verbs; one is a dry run before the write.
func (g *game) request(author string, verb int, before, u *unstructured.Unstructured) error {
	c := g.As(author)
	switch verb {
	case 0:
		return c.Update(g.Ctx(), u)
	case 1:
		return c.Patch(g.Ctx(), u, client.MergeFrom(before))
	case verbApply:
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		raw, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("encoding what is applied: %w", err)
		}
		return c.Patch(g.Ctx(), u, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(short(author)), client.ForceOwnership)
	default:
		if err := c.Update(g.Ctx(), u.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		return c.Update(g.Ctx(), u)
	}
}

// check waits until each Baseline agrees with its twin. Laundering ends the test at once.
func (g *game) check() {
	g.t.Helper()
	for _, w := range g.twins {
		g.Eventually(fmt.Sprintf("the Baseline of %s %s says the truth; writes: %s", w.Kind, w.name, strings.Join(g.about(w), "\n  ")), func() error {
			err := g.compare(w)
			if laundered := (*launderedError)(nil); errors.As(err, &laundered) {
				g.t.Fatalf("%s %s: %v\n  %s", w.Kind, w.name, err, strings.Join(g.about(w), "\n  "))
			}
			return err
		})
	}
}

// about are the last writes to an object.
func (g *game) about(w *twin) []string {
	var lines []string
	for _, line := range g.log {
		if strings.Contains(line, " "+w.name) {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-12):]
}

func (g *game) compare(w *twin) error {
	b := &v1alpha1.Baseline{}
	err := admin.Get(g.Ctx(), client.ObjectKey{Namespace: g.Name, Name: specguard.BaselineName(w.plural, w.Group, w.name)}, b)
	switch {
	case apierrors.IsNotFound(err) && w.wants() == "":
		return nil
	case err != nil:
		return err
	}
	body, err := g.authorised(b)
	if err != nil {
		return err
	}
	return w.compare(b, body)
}

// authorised reads the authorised body of a Baseline, nil when there is none.
func (g *game) authorised(b *v1alpha1.Baseline) (map[string]any, error) {
	if b.Spec.Authorised == nil {
		return nil, nil
	}
	revision := &v1alpha1.BaselineRevision{}
	if err := admin.Get(g.Ctx(), client.ObjectKey{Namespace: g.Name, Name: b.Spec.Authorised.Revision}, revision); err != nil {
		return nil, fmt.Errorf("reading the authorised body: %w", err)
	}
	raw, err := kube.Decompress(revision.Spec.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the authorised body: %w", err)
	}
	var body map[string]any
	return body, json.Unmarshal(raw, &body)
}
