// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// appliedStamp is the stamp of applies, without the version before the write.
type appliedStamp struct{ By, Groups, What string }

func appliedStampOf(o client.Object) appliedStamp {
	a := o.GetAnnotations()
	_, what, _ := strings.Cut(a[v1alpha1.AnnotationApplied], " ")
	return appliedStamp{a[v1alpha1.AnnotationApplier], a[v1alpha1.AnnotationApplierGroups], what}
}

// sent is one write of the object by a user.
type sent struct {
	name string
	do   func(t *testing.T, d *appsv1.Deployment)
}

func patched(w write) sent {
	return sent{fmt.Sprintf("%s patches %s", w.user, w.patch), func(t *testing.T, d *appsv1.Deployment) { apply(t, d, w) }}
}

// appliedBy is a server-side apply of an image and a label.
func appliedBy(user, manager, image string, groups ...string) sent {
	content := imageOf(image)
	content["metadata"] = map[string]any{"labels": map[string]any{"by": "an-apply"}}
	return appliedOf(user, manager, content, groups...)
}

func imageOf(image string) map[string]any {
	containers := []any{map[string]any{"name": "app", "image": image}}
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}}
}

// appliedOf is a server-side apply.
func appliedOf(user, manager string, content map[string]any, groups ...string) sent {
	return sent{fmt.Sprintf("%s applies %v", user, content), func(t *testing.T, d *appsv1.Deployment) {
		t.Helper()
		o := object("apps/v1", "Deployment", d.Name, content)
		c := mustBe(t, user, append([]string{"tenants"}, groups...)...)
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership); err != nil {
			t.Fatalf("applying as %s: %v", user, err)
		}
	}}
}

func lastApplied(user, config string) sent {
	return patched(merge(user, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, "kubectl.kubernetes.io/last-applied-configuration", config)))
}

func TestAnApplyThatChangesNoContentIsStamped(t *testing.T) {
	needsStampingPolicy(t)
	ssa, config := "manager=ci", "last-applied"
	tests := map[string]struct {
		writes []sent
		want   appliedStamp
	}{
		"no write states anything": {[]sent{patched(merge("ci", `{"metadata":{"labels":{"a":"b"}}}`))}, appliedStamp{}},
		"a server-side apply of the live value": {
			[]sent{patched(strategic("alice", setImage)), appliedBy("ci", "ci", "shop:2")}, appliedStamp{"ci", "", ssa}},
		"a server-side apply of another value": {
			[]sent{patched(strategic("alice", setImage)), appliedBy("ci", "ci", "shop:3")}, appliedStamp{"ci", "", ssa}},
		"groups that the installation stamps": {
			[]sent{appliedBy("ci", "ci", "shop:1", "ops", "devs", "others")}, appliedStamp{"ci", "devs,ops", ssa}},
		"a manager name with spaces": {
			[]sent{appliedBy("ci", "my manager=x", "shop:1")}, appliedStamp{"ci", "", "manager=my manager=x"}},
		"another user who takes the manager's name": {
			[]sent{appliedBy("ci", "ci", "shop:1"), patched(strategic("alice", setImage)), appliedBy("mallory", "ci", "shop:2")}, appliedStamp{"mallory", "", ssa}},
		"an apply by which the manager owns no more than before": {
			[]sent{appliedBy("ci", "ci", "shop:1"), appliedBy("mallory", "ci", "shop:9")}, appliedStamp{}},
		"a manager that applied another value before": {
			[]sent{appliedBy("ci", "ci", "shop:3"), patched(strategic("alice", setImage)), appliedBy("ci", "ci", "shop:2")}, appliedStamp{"ci", "", ssa}},
		"an update under the manager's name that takes a label from its apply": {
			[]sent{appliedBy("mallory", "ci", "shop:9"), patchedUnder("ci", "ci", `{"metadata":{"labels":{"by":null}}}`)}, appliedStamp{}},
		"an update under the manager's name that changes a label of its apply": {
			[]sent{appliedBy("mallory", "ci", "shop:9"), patchedUnder("ci", "ci", `{"metadata":{"labels":{"by":"a-much-longer-value"}}}`)}, appliedStamp{}},
		"the annotation of kubectl apply alone": {[]sent{lastApplied("ci", `{"a":1}`)}, appliedStamp{"ci", "", config}},
		"the annotation of kubectl apply by another user": {
			[]sent{lastApplied("ci", `{"a":1}`), lastApplied("mallory", `{"a":2}`)}, appliedStamp{"mallory", "", config}},
		"the annotation of kubectl apply, taken away": {
			[]sent{lastApplied("ci", `{"a":1}`), patched(merge("mallory", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":null}}}`))},
			appliedStamp{"ci", "", config}},
		"a label after it changes nothing": {
			[]sent{lastApplied("ci", `{"a":1}`), patched(merge("mallory", `{"metadata":{"labels":{"a":"b"}}}`))}, appliedStamp{"ci", "", config}},
		"content after it takes it away": {
			[]sent{lastApplied("ci", `{"a":1}`), patched(merge("mallory", `{"spec":{"paused":true}}`))}, appliedStamp{}},
		"an update that takes the image from the apply takes it away": {
			[]sent{appliedBy("ci", "ci", "shop:1"), patched(strategic("alice", setImage))}, appliedStamp{}},
		"an apply that gives fields up and takes a shorter one": {
			[]sent{appliedOf("ci", "ci", imageOf("shop:1")), appliedOf("mallory", "ci", map[string]any{"spec": map[string]any{"replicas": int64(1)}})},
			appliedStamp{"mallory", "", ssa}},
		"an entry that a client edits makes no apply": {
			[]sent{appliedBy("ci", "ci", "shop:1"), editEntries("mallory")}, appliedStamp{}},
		"a forged stamp does not land": {
			[]sent{patched(merge("mallory", `{"metadata":{"annotations":{"plumbline.dev/applied":"1 last-applied","plumbline.dev/applier":"ci","plumbline.dev/applier-groups":"ops"}}}`))}, appliedStamp{}},
		"a stamp that is taken off comes back": {
			[]sent{lastApplied("ci", `{"a":1}`), patched(merge("mallory", `{"metadata":{"annotations":{"plumbline.dev/applied":null,"plumbline.dev/applier":null}}}`))},
			appliedStamp{"ci", "", config}},
	}
	number := 0
	for name, test := range tests {
		number++
		d := deployment(fmt.Sprintf("applied-%d", number))
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			for _, w := range test.writes {
				w.do(t, d)
			}
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, appliedStampOf(d)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
			for _, entry := range d.ManagedFields {
				if strings.Contains(entry.FieldsV1.GetRawString(), "plumbline.dev/appli") && entry.Manager != "mallory" && !strings.Contains(name, "stamp") {
					t.Errorf("manager %s owns the stamp", entry.Manager)
				}
			}
		})
	}
}

// patchedUnder is an update that names a manager.
func patchedUnder(user, manager, patch string) sent {
	return sent{user + " patches as " + manager, func(t *testing.T, d *appsv1.Deployment) {
		t.Helper()
		c := mustBe(t, user, "tenants")
		if err := c.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}}
}

// editEntries takes fields from an apply, by a write of managedFields themselves.
func editEntries(user string) sent {
	return sent{user + " edits managedFields", func(t *testing.T, d *appsv1.Deployment) {
		t.Helper()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(deploymentKind)
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), live); err != nil {
			t.Fatal(err)
		}
		entries := live.GetManagedFields()
		for i := range entries {
			if entries[i].Operation == metav1.ManagedFieldsOperationApply {
				entries[i].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`)
			}
		}
		live.SetManagedFields(entries)
		if err := mustBe(t, user, "tenants").Update(t.Context(), live, client.FieldOwner("ci")); err != nil {
			t.Fatal(err)
		}
	}}
}

func TestAnApplyThatChangesNothingIsNoWrite(t *testing.T) {
	for name, w := range map[string]sent{
		"server-side": appliedBy("ci", "ci", "shop:1"),
		"client-side": lastApplied("ci", `{"a":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment("again-" + name)
			if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			w.do(t, d)
			first := liveVersion(t, d)
			for range 3 {
				w.do(t, d)
			}
			if again := liveVersion(t, d); again != first {
				t.Errorf("version %s became %s", first, again)
			}
		})
	}
}

func liveVersion(t *testing.T, o client.Object) string {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return o.GetResourceVersion()
}

func TestAStampOfAnApplyNamesTheVersionBefore(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("applied-after")
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	before := liveVersion(t, d)
	lastApplied("ci", `{"a":1}`).do(t, d)
	liveVersion(t, d)
	if got, want := d.Annotations[v1alpha1.AnnotationApplied], before+" last-applied"; got != want {
		t.Errorf("stamp %q, want %q", got, want)
	}
}

func TestTheAnnotationOfKubectlApplyCannotBeWrittenThroughStatus(t *testing.T) {
	d := deployment("applied-status")
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	lastApplied("ci", `{"a":1}`).do(t, d)
	patch := `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":2}"}}}`
	err := admin.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err == nil || !strings.Contains(err.Error(), "through the status subresource") {
		t.Errorf("answer: %v", err)
	}
}
