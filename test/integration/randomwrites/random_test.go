// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// decoy and cronDecoy own objects that mallory wants to pass for products of a
	// controller.
	decoy, cronDecoy metav1.OwnerReference
	log              []string
}

// TestRandomWritesAreFoundAndNeverLaundered is the naive twin of the whole assessor. Each
// value names its author, so that an untrusted value in an authorized body is laundered.
func TestRandomWritesAreFoundAndNeverLaundered(t *testing.T) {
	rounds := 8
	if os.Getenv(seed.Long) != "" {
		rounds = 80
	}
	const writesPerRound = 25
	g := &game{Namespace: cluster.NewNamespace(t), t: t, rng: seed.Random(t)}
	g.InstallKind(customGroup, "Widget", "widgets", apiextensions.NamespaceScoped, withSubresources)
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
				w.vague = w.authorized != nil
				w.forget()
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
	cron := g.object(&twin{kind: kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.Kind == "CronJob" })], name: "decoy"}, mallory)
	g.Must(g.As(mallory).Create(g.Ctx(), cron))
	g.cronDecoy = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "decoy", UID: cron.GetUID(), Controller: new(true)}
	for i, k := range kinds {
		for n := range 2 {
			w := newTwin(k, fmt.Sprintf("o%d-%d", i, n))
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

// forge sets the annotations by which CI would be recognized.
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
	case n < 7:
		g.status(w, author)
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
	w.observeCreation(valuesOf(w.kind, u.Object), author)
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
	body, err := g.authorized(b)
	if err != nil {
		return err
	}
	return w.compare(b, body)
}

// authorized reads the authorized body of a Baseline, nil when there is none.
func (g *game) authorized(b *v1alpha1.Baseline) (map[string]any, error) {
	if b.Spec.Authorized == nil {
		return nil, nil
	}
	revision := &v1alpha1.BaselineRevision{}
	if err := admin.Get(g.Ctx(), client.ObjectKey{Namespace: g.Name, Name: b.Spec.Authorized.Revision}, revision); err != nil {
		return nil, fmt.Errorf("reading the authorized body: %w", err)
	}
	raw, err := kube.Decompress(revision.Spec.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the authorized body: %w", err)
	}
	var body map[string]any
	return body, json.Unmarshal(raw, &body)
}
