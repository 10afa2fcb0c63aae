// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	// guardLabel is the label, with the value web, that the guard selects by.
	guardLabel = "app"
	envPath    = "/spec/template/spec/containers/[name=app]/env"
	argsPath   = "/spec/template/spec/containers/[name=app]/args"

	byMallory      = " by mallory (Untrusted, WriterStamp)"
	imageByMallory = "Drifted: Changed " + imagePath + byMallory
)

// hand is a person's hand on one Deployment, which CI deployed.
type hand struct {
	*place
	name string
}

func (h hand) patch(user string, kind types.PatchType, format string, args ...any) {
	h.t.Helper()
	h.must(as(h.t, user).Patch(h.t.Context(), h.named(h.name), client.RawPatch(kind, fmt.Appendf(nil, format, args...))))
}

// merge writes a JSON merge patch.
func (h hand) merge(user, format string, args ...any) {
	h.t.Helper()
	h.patch(user, types.MergePatchType, format, args...)
}

// strategic writes a strategic merge patch of the container.
func (h hand) strategic(user, container string) {
	h.t.Helper()
	h.patch(user, types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"app",%s}]}}}}`, container)
}

// put replaces the object by the live one with a change.
func (h hand) put(user string, change func(*appsv1.Deployment)) {
	h.t.Helper()
	d := h.live(h.name)
	change(d)
	h.must(as(h.t, user).Update(h.t.Context(), d))
}

// apply takes an image by server-side apply.
func (h hand) apply(user, manager, image string) {
	h.t.Helper()
	body := fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image)
	h.must(as(h.t, user).Patch(h.t.Context(), h.named(h.name), client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager), client.ForceOwnership))
}

func (h hand) scale(user string, replicas int) {
	h.t.Helper()
	h.must(as(h.t, user).SubResource("scale").Patch(h.t.Context(), h.named(h.name), guarded.ScalePatch(replicas)))
}

// recreate deletes the object and creates it with an image, as replace --force does.
func (h hand) recreate(user, image string) {
	h.t.Helper()
	h.must(as(h.t, user).Delete(h.t.Context(), h.named(h.name)))
	d := serving(deployment(h.namespace, h.name))
	d.Spec.Template.Spec.Containers[0].Image = image
	h.must(as(h.t, user).Create(h.t.Context(), d))
}

// serving gives a Deployment arguments and a variable.
func serving(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers[0].Args = []string{"serve", "--safe"}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "live"}}
	return d
}

// byHand are changes that a person can make with kubectl, and what the Baseline says.
var byHand = map[string]struct {
	play func(hand)
	want string
}{
	"an image is set":                              {func(h hand) { h.strategic(mallory, `"image":"evil:1"`) }, imageByMallory},
	"an image is set by server-side apply":         {func(h hand) { h.apply(mallory, "kubectl", "evil:1") }, imageByMallory},
	"an image is set by the manager of a pipeline": {func(h hand) { h.apply(mallory, "argocd-controller", "evil:1") }, imageByMallory},
	"an image is set by a PUT": {func(h hand) {
		h.put(mallory, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
	}, imageByMallory},
	"an image is set and put back": {func(h hand) {
		h.strategic(mallory, `"image":"evil:1"`)
		h.strategic(mallory, `"image":"registry.example/shop:1"`)
	}, "InSync"},
	"an image is set by one person and by the next": {func(h hand) {
		h.strategic(mallory, `"image":"evil:1"`)
		h.strategic("bob", `"image":"evil:2"`)
	}, "Drifted: Changed " + imagePath + " by bob (Untrusted, WriterStamp)"},
	"a variable is added":     {func(h hand) { h.strategic(mallory, `"env":[{"name":"DEBUG","value":"1"}]`) }, "Drifted: Added " + envPath + "/[name=DEBUG]" + byMallory},
	"a variable is taken out": {func(h hand) { h.strategic(mallory, `"env":[{"name":"MODE","$patch":"delete"}]`) }, "Drifted: Removed " + envPath + byMallory},
	"arguments change places": {func(h hand) { h.strategic(mallory, `"args":["--safe","serve"]`) }, "Drifted: Changed " + argsPath + byMallory},
	"a rollout is paused":     {func(h hand) { h.merge(mallory, `{"spec":{"paused":true}}`) }, "Drifted: Added /spec/paused" + byMallory},
	"a rollout is restarted": {func(h hand) {
		h.merge(mallory, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-03-01T12:00:00Z"}}}}}`)
	}, "InSync"},
	"the stamp is forged with the change": {func(h hand) {
		h.merge(mallory, `{"metadata":{"annotations":{%q:%q}},"spec":{"paused":true}}`, v1alpha1.AnnotationWriter, ci)
	}, "Drifted: Added /spec/paused" + byMallory},
	"the stamp is forged after the change": {func(h hand) {
		h.strategic(mallory, `"image":"evil:1"`)
		h.merge(mallory, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationWriter, ci)
	}, imageByMallory},
	"the stamp is taken off before the change": {func(h hand) {
		h.merge(mallory, `{"metadata":{"annotations":{%q:null,%q:null}}}`, v1alpha1.AnnotationWriter, v1alpha1.AnnotationSpecHash)
		h.strategic(mallory, `"image":"evil:1"`)
	}, imageByMallory},
	"the stamp alone is forged": {func(h hand) {
		h.merge(mallory, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationWriter, mallory)
	}, "InSync"},
	"a reason to break the glass is written, with no right to": {func(h hand) {
		h.merge(mallory, `{"metadata":{"annotations":{%q:"an outage"}},"spec":{"paused":true}}`, v1alpha1.AnnotationBreakGlassReason)
	}, "Drifted: Added /spec/paused" + byMallory},
	"the label of the guard is taken off, the image set, and the label put back": {func(h hand) {
		h.merge(mallory, `{"metadata":{"labels":{%q:null}}}`, guardLabel)
		h.strategic(mallory, `"image":"evil:1"`)
		h.merge(mallory, `{"metadata":{"labels":{%q:"web"}}}`, guardLabel)
	}, imageByMallory},
	"the label of the guard is taken off in the change": {func(h hand) {
		h.patch(mallory, types.StrategicMergePatchType,
			`{"metadata":{"labels":{%q:null}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil:1"}]}}}}`, guardLabel)
	}, imageByMallory},
	"an owner is added before the change": {func(h hand) {
		h.put(mallory, func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x", Controller: new(true)}}
		})
		h.strategic(mallory, `"image":"evil:1"`)
	}, imageByMallory},
	"CI writes the whole object over a foreign variable": {func(h hand) {
		h.strategic(mallory, `"env":[{"name":"DEBUG","value":"1"}]`)
		h.put(ci, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:2" })
	}, "Drifted: Added " + envPath + "/[name=DEBUG]" + byMallory},
	"CI applies another image over a foreign variable": {func(h hand) {
		h.strategic(mallory, `"env":[{"name":"DEBUG","value":"1"}]`)
		h.apply(ci, "ci", "registry.example/shop:2")
	}, "Drifted: Added " + envPath + "/[name=DEBUG]" + byMallory},
	"CI deploys over a foreign image": {func(h hand) {
		h.strategic(mallory, `"image":"evil:1"`)
		h.apply(ci, "ci", "registry.example/shop:2")
	}, "InSync"},
	"replicas are scaled by hand":                 {func(h hand) { h.scale(mallory, 5) }, "Drifted: Changed /spec/replicas by mallory (Untrusted, Admission)"},
	"replicas are edited by hand":                 {func(h hand) { h.merge(mallory, `{"spec":{"replicas":5}}`) }, "Drifted: Changed /spec/replicas" + byMallory},
	"replicas are scaled by the autoscaler":       {func(h hand) { h.scale(autoscaler, 5) }, "InSync [autoscaler /spec/replicas]"},
	"the autoscaler scales to none":               {func(h hand) { h.scale(autoscaler, 0) }, "InSync [autoscaler /spec/replicas]"},
	"the autoscaler scales to the largest number": {func(h hand) { h.scale(autoscaler, math.MaxInt32) }, "InSync [autoscaler /spec/replicas]"},
	"the object is deleted":                       {func(h hand) { h.must(as(h.t, mallory).Delete(h.t.Context(), h.named(h.name))) }, fmt.Sprintf(deletedBy, known)},
	"the object is made again with another image": {func(h hand) { h.recreate(mallory, "evil:1") }, imageByMallory},
	"the object is made again by CI":              {func(h hand) { h.recreate(ci, "registry.example/shop:2") }, "InSync"},
	"a change is tried by a dry run": {func(h hand) {
		h.must(as(h.t, mallory).Patch(h.t.Context(), h.named(h.name), guarded.ImagePatch("evil:1"), client.DryRunAll))
	}, "InSync"},
	"the status is written": {func(h hand) {
		h.must(as(h.t, mallory).Status().Patch(h.t.Context(), h.named(h.name), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`))))
	}, "InSync"},
}

// Each change is judged by its author alone, whatever the author does beside it.
func TestChangesMadeByHandAreJudgedByTheirAuthor(t *testing.T) {
	p := newPlace(t)
	p.guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{guardLabel: "web"}}
	})
	titles := slices.Sorted(maps.Keys(byHand))
	names := make(map[string]string, len(titles))
	for i, title := range titles {
		names[title] = fmt.Sprintf("shop-%d", i)
		p.must(as(t, ci).Create(t.Context(), serving(deployment(p.namespace, names[title]))))
	}
	for _, title := range titles {
		p.untilIs(names[title], "InSync")
	}
	for _, title := range titles {
		byHand[title].play(hand{p, names[title]})
	}
	p.witness() // what was not found by now is not found
	for _, title := range titles {
		t.Run(title, func(t *testing.T) {
			in := &place{t: t, namespace: p.namespace}
			b := in.untilIs(names[title], byHand[title].want)
			if by := authorOf(b); by != ci {
				t.Errorf("%s has authorized it", by)
			}
			if revision := guarded.Authorized(b); revision > 1 && !strings.HasPrefix(title, "CI ") && !strings.HasSuffix(title, "by CI") {
				t.Errorf("revision %d is authorized", revision)
			}
		})
	}
}

func authorOf(b *v1alpha1.Baseline) string {
	if b.Spec.Authorized == nil {
		return "nobody"
	}
	return b.Spec.Authorized.By
}
