// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const mallory = "mallory"

// ownable is a kind whose objects a built-in controller may have made.
type ownable struct {
	apiVersion, kind, resource string
	// body is the object but for its metadata, and changes are merge patches of it,
	// one after the other.
	body    string
	changes [2]string
	// owner is an object that may own one, but for its metadata.
	owner string
}

const podTemplate = `{"metadata":{"labels":{"app":"web"}},"spec":{"restartPolicy":"%s","containers":[{"name":"app","image":"registry.example/shop:1"}]}}`

var ownables = []ownable{
	{
		"apps/v1", "ReplicaSet", "replicasets.apps",
		`{"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":` + fmt.Sprintf(podTemplate, "Always") + `}}`,
		[2]string{`{"spec":{"minReadySeconds":1}}`, `{"spec":{"minReadySeconds":2}}`},
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":` + fmt.Sprintf(podTemplate, "Always") + `}}`,
	},
	{
		"batch/v1", "Job", "jobs.batch",
		`{"spec":{"suspend":true,"template":` + fmt.Sprintf(podTemplate, "Never") + `}}`,
		[2]string{`{"spec":{"parallelism":2}}`, `{"spec":{"parallelism":3}}`},
		`{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":` + fmt.Sprintf(podTemplate, "Never") + `}}}}`,
	},
	{
		"apps/v1", "ControllerRevision", "controllerrevisions.apps",
		`{"revision":1,"data":{"a":"1"}}`,
		[2]string{`{"revision":2}`, `{"revision":3}`},
		`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":0,"serviceName":"web","selector":{"matchLabels":{"app":"web"}},"template":` + fmt.Sprintf(podTemplate, "Always") + `}}`,
	},
	{
		"v1", "Pod", "pods",
		fmt.Sprintf(podTemplate, "Always"),
		[2]string{`{"spec":{"activeDeadlineSeconds":3600}}`, `{"spec":{"activeDeadlineSeconds":60}}`},
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":` + fmt.Sprintf(podTemplate, "Always") + `}}`,
	},
}

// object makes an object from its body.
func (w *world) object(body, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	w.Must(json.Unmarshal([]byte(body), &u.Object))
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

func (w *world) own(o ownable) *unstructured.Unstructured {
	u := w.object(o.body, "web")
	u.SetAPIVersion(o.apiVersion)
	u.SetKind(o.kind)
	return u
}

// guardKind puts a guard over one kind in force, and reads its Baselines.
func (w *world) guardKind(apiVersion, kind, resource string) {
	w.t.Helper()
	w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: apiVersion, Kind: kind}}
	})
	w.Resource = schema.ParseGroupResource(resource)
}

// ownerOf makes an object of mallory's that may own an object.
func (w *world) ownerOf(o ownable) metav1.OwnerReference {
	w.t.Helper()
	owner := w.object(o.owner, "decoy")
	w.Must(w.As(mallory).Create(w.Ctx(), owner))
	return metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: "decoy", UID: owner.GetUID(), Controller: new(true)}
}

func (w *world) merge(user string, o client.Object, patch string) {
	w.t.Helper()
	w.Must(w.As(user).Patch(w.Ctx(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// isMallorys waits until a Baseline names mallory, and checks that nothing of hers is
// authorized. The creator of a kind without generations is not proven once its objects
// have been written again: mallory is then named as the last writer.
func (w *world) isMallorys(name string, authorized int64) {
	w.t.Helper()
	w.Until(name, "the change is found as mallory's", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) == 0 || b.Status.Findings[0].Actor.User != mallory {
			return errors.New("it is not")
		}
		if got := guarded.Authorized(b); got != authorized {
			w.t.Fatalf("revision %d is authorized: %s", got, guarded.Describe(b))
		}
		return nil
	})
}

// C1 of the guard's review: an owner switched the stamp off, and the stamp of before
// was believed.
func TestAnOwnerThatIsAddedFirstLaundersNothing(t *testing.T) {
	start(t)
	for _, o := range ownables {
		t.Run(o.kind, func(t *testing.T) {
			w := newWorld(t)
			w.guardKind(o.apiVersion, o.kind, o.resource)
			u := w.own(o)
			w.Must(w.As(ci).Create(w.Ctx(), u))
			w.UntilIs("web", "InSync")
			owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []any{w.ownerOf(o)}}})
			w.Must(err)
			w.merge(mallory, u, string(owner))
			w.merge(mallory, u, o.changes[0]) // CI's stamp would stay
			w.isMallorys("web", 1)
			var forged map[string]any
			w.Must(json.Unmarshal([]byte(o.changes[1]), &forged))
			forged["metadata"] = map[string]any{"annotations": map[string]any{v1alpha1.AnnotationWriter: ci}}
			patch, err := json.Marshal(forged)
			w.Must(err)
			w.merge(mallory, u, string(patch))
			w.isMallorys("web", 1)
		})
	}
}

// C1 of the guard's review: a forged stamp of an object that began with an owner.
func TestAnOwnerThatIsTakenOffAfterTheCreationLaundersNothing(t *testing.T) {
	start(t)
	for _, o := range ownables {
		t.Run(o.kind, func(t *testing.T) {
			w := newWorld(t)
			w.guardKind(o.apiVersion, o.kind, o.resource)
			u := w.own(o)
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationWriter: ci})
			u.SetOwnerReferences([]metav1.OwnerReference{w.ownerOf(o)})
			w.Must(w.As(mallory).Create(w.Ctx(), u))
			w.merge(mallory, u, `{"metadata":{"ownerReferences":null}}`)
			w.isMallorys("web", 0)
		})
	}
}

// H3 of the guard's review: kinds whose content is not under spec could not be guarded.
func TestTwoWritesOfCIInARowAreInSyncWhereverTheContentIs(t *testing.T) {
	start(t)
	for name, tc := range map[string]struct{ apiVersion, kind, resource, body, change string }{
		"data of a ConfigMap":                  {"v1", "ConfigMap", "configmaps", `{"data":{"level":"info"}}`, `{"data":{"level":"warn"}}`},
		"subjects of a RoleBinding":            {"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings.rbac.authorization.k8s.io", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"a"}]}`, `{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"b"}]}`},
		"the revision of a ControllerRevision": {"apps/v1", "ControllerRevision", "controllerrevisions.apps", ownables[2].body, ownables[2].changes[0]},
		"the spec of a Job":                    {"batch/v1", "Job", "jobs.batch", ownables[1].body, ownables[1].changes[0]},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guardKind(tc.apiVersion, tc.kind, tc.resource)
			u := w.object(tc.body, "web")
			u.SetAPIVersion(tc.apiVersion)
			u.SetKind(tc.kind)
			w.Must(w.As(ci).Create(w.Ctx(), u))
			w.UntilIs("web", "InSync")
			w.merge(ci, u, tc.change)
			w.Until("web", "the second write is authorized", func(b *v1alpha1.Baseline) error {
				if guarded.Authorized(b) != 2 || b.Status.State != v1alpha1.StateInSync {
					return errors.New("it is not")
				}
				return nil
			})
		})
	}
}

// H4 of the guard's review: the order that somebody else gave a list was authorized by
// the next write of the list.
func TestAnAppendByCIAuthorizesNoForeignOrder(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	d := guarded.Deployment(w.namespace, "web")
	d.Spec.Template.Spec.Containers[0].Args = []string{"--config=/etc/safe", "--config=/etc/open", "serve"}
	w.Must(w.As(ci).Create(w.Ctx(), d))
	w.UntilIs("web", "InSync")
	w.Patch(mallory, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","args":["--config=/etc/open","--config=/etc/safe","serve"]}]}}}}`)
	w.isMallorys("web", 1)
	w.Must(w.As(ci).Patch(w.Ctx(), w.Named("web"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--v=2"}]`))))
	w.SetEnv(ci, "web", "WITNESS", "1") // comes later, so all before it is judged
	w.Until("web", "CI's next write is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return errors.New("it is not")
		}
		return nil
	})
	w.isMallorys("web", 2)
}

// registerStatefulSets does what an upgrade with one more line in guard.resources does.
func (w *world) registerStatefulSets() {
	w.t.Helper()
	change := func(apiVersion, kind, name, path, value string) {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetName(name)
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(u), u))
		before := u.DeepCopy()
		w.Must(admin.Patch(w.Ctx(), u, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":%q,"value":%s}]`, path, value))))
		w.t.Cleanup(func() {
			err := admin.Get(context.Background(), client.ObjectKeyFromObject(u), u)
			if err == nil {
				before.SetResourceVersion(u.GetResourceVersion())
				before.SetManagedFields(nil)
				err = admin.Update(context.Background(), before)
			}
			if err != nil {
				w.t.Errorf("putting %s %s back: %v", kind, name, err)
			}
		})
	}
	change("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", stamp.Name, "/spec/matchConstraints/resourceRules/-",
		`{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["statefulsets"],"operations":["CREATE","UPDATE"],"scope":"Namespaced"}`)
	change("rbac.authorization.k8s.io/v1", "ClusterRole", "plumbline-assessor", "/rules/-",
		`{"apiGroups":["apps"],"resources":["statefulsets"],"verbs":["get","list","watch"]}`)
}

// H6 of the guard's review: a stamp that somebody wrote before the kind was registered
// was believed afterwards.
func TestAStampOfBeforeTheKindWasRegisteredIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.Guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "StatefulSet"}}
	})
	w.SecondOver(g.CreationTimestamp.Time)
	w.Resource = schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	set := func(name, image string) *appsv1.StatefulSet {
		labels := map[string]string{"app": name}
		return &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Annotations: map[string]string{v1alpha1.AnnotationWriter: ci}},
			Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
				},
			},
		}
	}
	w.Must(w.As(mallory).Create(w.Ctx(), set("sleeper", "registry.example/evil:1")))
	w.registerStatefulSets()
	w.Active(g)
	w.Until("sleeper", "the forged stamp authorizes nothing", func(b *v1alpha1.Baseline) error {
		if b.Spec.Authorized != nil {
			t.Fatalf("it is authorized as created by %s", b.Spec.Authorized.By)
		}
		if b.Status.State != v1alpha1.StateDrifted {
			return errors.New("it is not judged")
		}
		return nil
	})
	// What is created from now on is stamped. The policy needs a moment.
	made := 0
	w.Eventually("a creation by CI is authorized", func() error {
		made++
		name := fmt.Sprintf("db-%d", made)
		w.Must(w.As(ci).Create(w.Ctx(), set(name, guarded.Image)))
		b := w.Until(name, "it is judged", func(b *v1alpha1.Baseline) error {
			if b.Status.State == "" {
				return errors.New("it is not")
			}
			return nil
		})
		if b.Spec.Authorized == nil {
			return errors.New(guarded.Describe(b))
		}
		return nil
	})
}
