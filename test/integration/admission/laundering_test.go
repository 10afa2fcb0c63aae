// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	guards "github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// ownable is a kind whose objects a built-in controller may have made.
type ownable struct {
	apiVersion, kind, group, resource string
	// body is the object but for its metadata, and changes are merge patches of it,
	// one after the other.
	body    string
	changes [2]string
	// path is where the changes are.
	path string
	// owner is an object that may own one, but for its metadata.
	owner string
}

const podTemplate = `{"metadata":{"labels":{"app":"web"}},"spec":{"restartPolicy":"%s","containers":[{"name":"app","image":"shop/web:1"}]}}`

var (
	alwaysTemplate = fmt.Sprintf(podTemplate, "Always")
	neverTemplate  = fmt.Sprintf(podTemplate, "Never")
	ownables       = []ownable{
		{
			"apps/v1", "ReplicaSet", "apps", "replicasets",
			`{"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":` + alwaysTemplate + `}}`,
			[2]string{`{"spec":{"minReadySeconds":1}}`, `{"spec":{"minReadySeconds":2}}`}, "/spec/minReadySeconds",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":` + alwaysTemplate + `}}`,
		},
		{
			"batch/v1", "Job", "batch", "jobs",
			`{"spec":{"suspend":true,"template":` + neverTemplate + `}}`,
			[2]string{`{"spec":{"parallelism":2}}`, `{"spec":{"parallelism":3}}`}, "/spec/parallelism",
			`{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":` + neverTemplate + `}}}}`,
		},
		{
			"apps/v1", "ControllerRevision", "apps", "controllerrevisions",
			`{"revision":1,"data":{"a":"1"}}`,
			[2]string{`{"revision":2}`, `{"revision":3}`}, "/revision",
			`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":0,"serviceName":"web","selector":{"matchLabels":{"app":"web"}},"template":` + alwaysTemplate + `}}`,
		},
	}
)

// launderer is alice, who writes to an object of a kind and to the webhook's port.
type launderer struct {
	*place
	ownable
}

// newLaunderer puts a guard over the kind in force at the webhook and at an assessor, with
// a change.
func newLaunderer(t *testing.T, o ownable, change func(*v1alpha1.GuardSpec)) launderer {
	t.Helper()
	p := newPlace(t, func(s *v1alpha1.GuardSpec) {
		s.Resources = []v1alpha1.GuardedResource{{APIVersion: o.apiVersion, Kind: o.kind}}
		change(s)
	})
	startAssessor(t)
	eventually(t, "the guard is in force at the assessor", func() bool {
		g := &v1alpha1.SpecGuard{}
		err := w.client.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: "guard"}, g)
		return err == nil && guards.Ready(g) == nil
	})
	eventually(t, "the second of the guard is over", func() bool { return time.Now().Truncate(time.Second).After(p.made) })
	return launderer{p, o}
}

func (l launderer) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l launderer) as(user string) client.Client {
	l.t.Helper()
	c, err := apiserver.As(w.config, user)
	l.must(err)
	return c
}

// object makes an object from its body.
func (l launderer) object(body, name string) *unstructured.Unstructured {
	l.t.Helper()
	u := &unstructured.Unstructured{}
	l.must(json.Unmarshal([]byte(body), &u.Object))
	u.SetNamespace(l.namespace)
	u.SetName(name)
	return u
}

// web is the object that is laundered, not created yet.
func (l launderer) web() *unstructured.Unstructured {
	l.t.Helper()
	u := l.object(l.body, "web")
	u.SetAPIVersion(l.apiVersion)
	u.SetKind(l.kind)
	u.SetLabels(map[string]string{"app": "web"})
	return u
}

// ownerReference makes an object of alice that may own the other.
func (l launderer) ownerReference() metav1.OwnerReference {
	l.t.Helper()
	owner := l.object(l.owner, "decoy")
	l.must(l.as(alice).Create(l.t.Context(), owner))
	return metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: "decoy", UID: owner.GetUID(), Controller: new(true)}
}

func (l launderer) merge(o client.Object, patch string, options ...client.PatchOption) {
	l.t.Helper()
	l.must(l.as(alice).Patch(l.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), options...))
}

// forge has a review say that CI makes a write, before alice makes it. The review shows
// no owners, as nobody checks what it shows.
func (l launderer) forge(operation admissionv1.Operation, before, after *unstructured.Unstructured) {
	l.t.Helper()
	forged := &admissionv1.AdmissionRequest{
		UID: "forged", Operation: operation, Namespace: l.namespace, Name: "web",
		Kind:     metav1.GroupVersionKind(after.GroupVersionKind()),
		Resource: metav1.GroupVersionResource{Group: l.group, Version: "v1", Resource: l.resource},
		UserInfo: authenticationv1.UserInfo{Username: ci},
	}
	for place, o := range map[*runtime.RawExtension]*unstructured.Unstructured{&forged.Object: after, &forged.OldObject: before} {
		if o == nil {
			continue
		}
		shown := o.DeepCopy()
		shown.SetOwnerReferences(nil)
		shown.SetLabels(map[string]string{"app": "web"})
		raw, err := json.Marshal(shown)
		l.must(err)
		place.Raw = raw
	}
	raw, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: forged})
	l.must(err)
	if code, answer, err := newAttacker(l.t, "127.0.0.68").send(request("/validate", "application/json", raw)); err != nil || code != http.StatusOK {
		l.t.Fatalf("%d %s (%v)", code, answer, err)
	}
	version := ""
	if before != nil {
		version = before.GetResourceVersion()
	}
	l.waitRecord("the forged review", func(r specguard.WriteRecord) bool {
		return r.User == ci && string(r.Operation) == string(operation) && r.ResourceVersionBefore == version && r.UID == string(after.GetUID())
	})
}

// writeAsCI has alice make a change of which a review says that CI makes it.
func (l launderer) writeAsCI(u *unstructured.Unstructured, patch string) {
	l.t.Helper()
	before := u.DeepCopy()
	l.must(w.client.Get(l.t.Context(), client.ObjectKeyFromObject(u), before))
	after := before.DeepCopy()
	l.merge(after, patch, client.DryRunAll)
	l.forge(admissionv1.Update, before, after)
	l.merge(u, patch)
}

// C1 of the guard's review, where the webhook stamps the writer: an owner switched the
// stamp and the record off, and a forged record proved the stamp of before.
func TestAnOwnerThatIsAddedFirstLaundersNothingWhereTheWebhookStamps(t *testing.T) {
	for _, o := range ownables {
		t.Run(o.kind, func(t *testing.T) {
			l := newLaunderer(t, o, unchanged)
			u := l.web()
			l.must(l.as(ci).Create(t.Context(), u))
			l.untilBaselineOf(l.resource, l.group, "1 by "+ci+", InSync")
			owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []any{l.ownerReference()}}})
			l.must(err)
			l.merge(u, string(owner))
			l.writeAsCI(u, o.changes[0])
			l.untilBaselineOf(l.resource, l.group, "1 by "+ci+", Drifted; "+o.path+" by alice (Untrusted)")
			var forged map[string]any
			l.must(json.Unmarshal([]byte(o.changes[1]), &forged))
			forged["metadata"] = map[string]any{"annotations": map[string]any{v1alpha1.AnnotationWriter: ci}}
			patch, err := json.Marshal(forged)
			l.must(err)
			l.writeAsCI(u, string(patch))
			if got := u.GetAnnotations()[v1alpha1.AnnotationWriter]; got != alice {
				t.Errorf("the writer is %q", got)
			}
			l.untilBaselineOf(l.resource, l.group, "1 by "+ci+", Drifted; "+o.path+" by alice (Untrusted)")
		})
	}
}

// C1 of the guard's review, where the webhook stamps the writer: a forged stamp of an
// object that began with an owner, and a forged record of its creation.
func TestAnOwnerThatIsTakenOffAfterTheCreationLaundersNothingWhereTheWebhookStamps(t *testing.T) {
	for _, o := range ownables {
		t.Run(o.kind, func(t *testing.T) {
			l := newLaunderer(t, o, unchanged)
			u := l.web()
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationWriter: ci})
			u.SetOwnerReferences([]metav1.OwnerReference{l.ownerReference()})
			l.must(l.as(alice).Create(t.Context(), u))
			l.forge(admissionv1.Create, nil, u)
			l.merge(u, `{"metadata":{"ownerReferences":null}}`)
			l.untilBaselineOf(l.resource, l.group, "nothing authorized, Drifted;  by alice (Untrusted)")
			if got := u.GetAnnotations()[v1alpha1.AnnotationWriter]; got != alice {
				t.Errorf("the writer is %q", got)
			}
		})
	}
}

// The webhook does not know that the assessor goes on guarding an object whose label a
// tenant took off: the stamp of before stayed on what the tenant wrote afterwards.
func TestALabelThatIsTakenOffFirstLaundersNothingWhereTheWebhookStamps(t *testing.T) {
	o := ownables[0]
	l := newLaunderer(t, o, func(s *v1alpha1.GuardSpec) { s.Selector = selector("app", "web") })
	u := l.web()
	l.must(l.as(ci).Create(t.Context(), u))
	l.untilBaselineOf(l.resource, l.group, "1 by "+ci+", InSync")
	l.merge(u, `{"metadata":{"labels":null}}`)
	l.writeAsCI(u, o.changes[0])
	l.untilBaselineOf(l.resource, l.group, "1 by "+ci+", Drifted; "+o.path+" by "+ci+" (Trusted)") // as the forged record says
	if got, ok := u.GetAnnotations()[v1alpha1.AnnotationWriter]; ok {
		t.Errorf("the writer of an object that the webhook takes for unguarded is %q", got)
	}
}
