// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// rollout is a Deployment that CI rolls out and back with the real kubectl.
type rollout struct {
	*guarded.Namespace
	t       *testing.T
	kubectl *harness.Cluster
}

const secondImage = "registry.example/shop:2"

func newRollout(t *testing.T) *rollout {
	t.Helper()
	r := &rollout{Namespace: cluster.NewNamespace(t), t: t}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	r.Must(os.WriteFile(file, kubeconfig, 0o600))
	r.kubectl = &harness.Cluster{Kubeconfig: file, Path: filepath.Clean(os.Getenv("KUBEBUILDER_ASSETS"))}
	startControllers(t)
	startAssessor(t)
	r.UnderGuard()
	d := guarded.Deployment(r.Name, "web")
	d.Spec.Template.Spec.Containers[0].Args = []string{"serve", "--safe"}
	r.Must(r.As(guarded.CI).Create(r.Ctx(), d))
	r.isAt(guarded.Image, 1)
	r.SetImage(guarded.CI, "web", secondImage)
	r.isAt(secondImage, 2)
	return r
}

// run runs kubectl rollout as CI.
func (r *rollout) run(verb string) {
	r.t.Helper()
	r.Eventually("kubectl rollout "+verb, func() error {
		_, err := r.kubectl.Run(r.Ctx(), []string{"kubectl", "rollout", verb, "deployment/web", "-n", r.Name, "--as", guarded.CI, "--as-group", cluster.People})
		return err
	})
}

// isAt waits until the Baseline is in sync at a revision, and a ReplicaSet has an image.
func (r *rollout) isAt(image string, revision int64) {
	r.t.Helper()
	r.Until("web", fmt.Sprintf("revision %d is in sync", revision), func(b *v1alpha1.Baseline) error {
		if guarded.Describe(b) != "InSync" || guarded.Authorized(b) != revision {
			return fmt.Errorf("revision %d: %s", guarded.Authorized(b), guarded.Describe(b))
		}
		return nil
	})
	r.set(image)
}

// set waits for the ReplicaSet of an image.
func (r *rollout) set(image string) *appsv1.ReplicaSet {
	r.t.Helper()
	var found *appsv1.ReplicaSet
	r.Eventually("a ReplicaSet with "+image, func() error {
		var list appsv1.ReplicaSetList
		if err := admin.List(r.Ctx(), &list, client.InNamespace(r.Name)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Spec.Template.Spec.Containers[0].Image == image {
				found = &list.Items[i]
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// tamper has mallory change the template of a ReplicaSet, as the role edit allows.
func (r *rollout) tamper(set *appsv1.ReplicaSet, patch string) {
	r.t.Helper()
	r.Must(r.As(mallory).Patch(r.Ctx(), set, client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// isWithheld waits until the Baseline stays at a revision with findings of CI, and an
// event says why.
func (r *rollout) isWithheld(revision int64, paths []string, why string) {
	r.t.Helper()
	r.Until("web", "the undo is drift of CI", func(b *v1alpha1.Baseline) error {
		var got []string
		for i := range b.Status.Findings {
			f := &b.Status.Findings[i]
			if f.Actor.User != guarded.CI || f.Actor.Class != v1alpha1.ActorTrusted {
				return fmt.Errorf("it is %s", guarded.Describe(b))
			}
			got = append(got, f.Path)
		}
		slices.Sort(got)
		if guarded.Authorized(b) != revision {
			r.t.Fatalf("revision %d is authorized: %s", guarded.Authorized(b), guarded.Describe(b))
		}
		if !slices.Equal(got, paths) {
			return fmt.Errorf("it is %s", guarded.Describe(b))
		}
		return nil
	})
	r.Eventually("an event says "+why, func() error {
		var list eventsv1.EventList
		if err := admin.List(r.Ctx(), &list, client.InNamespace(r.Name)); err != nil {
			return err
		}
		var notes []string
		for i := range list.Items {
			if list.Items[i].Reason != string(specguard.ReasonWithheld) {
				continue
			}
			notes = append(notes, list.Items[i].Note)
			if strings.Contains(list.Items[i].Note, why) {
				return nil
			}
		}
		return fmt.Errorf("the events say %q", notes)
	})
}

// M10 of the guard's review: a tenant changed what an undo by CI brings back.
func TestAnUndoByCIAuthorizesNoTemplateThatATenantChanged(t *testing.T) {
	const args = "/spec/template/spec/containers/[name=app]/args"
	r := newRollout(t)

	r.run("undo")
	r.isAt(guarded.Image, 3)
	entries := r.Live("web").ManagedFields
	if !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "kubectl" && e.Operation == metav1.ManagedFieldsOperationUpdate
	}) {
		t.Errorf("the field manager of an undo is not the one that is looked for: %+v", entries)
	}
	r.run("restart")
	r.isAt(guarded.Image, 3)

	r.tamper(r.set(secondImage), `[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["serve","--debug"]}]`)
	undoTo := r.set(secondImage)
	r.undoTo(undoTo)
	r.isWithheld(3, []string{args, guarded.ImagePath}, "rollout undo brings back a template that was never authorized")
	r.back(3)

	r.tamper(undoTo, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example/evil:1"}]`)
	r.Must(r.As(mallory).Patch(r.Ctx(), r.Named("web"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
	r.undoTo(undoTo)
	r.isWithheld(3, []string{args, guarded.ImagePath}, "rollout undo may have brought back")
}

// undoTo has CI go back to the revision of a ReplicaSet.
func (r *rollout) undoTo(set *appsv1.ReplicaSet) {
	r.t.Helper()
	r.Must(admin.Get(r.Ctx(), client.ObjectKeyFromObject(set), set))
	r.Eventually("kubectl rollout undo", func() error {
		_, err := r.kubectl.Run(r.Ctx(), []string{
			"kubectl", "rollout", "undo", "deployment/web", "--to-revision", set.Annotations["deployment.kubernetes.io/revision"],
			"-n", r.Name, "--as", guarded.CI, "--as-group", cluster.People,
		})
		return err
	})
}

// back has CI write what is authorized.
func (r *rollout) back(revision int64) {
	r.t.Helper()
	r.Patch(guarded.CI, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+guarded.Image+`","args":["serve","--safe"]}]}}}}`)
	r.isAt(guarded.Image, revision)
}
