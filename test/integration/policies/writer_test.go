// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// stamp is what the writer policy leaves on an object; nil fields are absent.
type stamp struct{ Writer, Groups *string }

func by(writer string) stamp { return stamp{Writer: &writer} }

func stampOf(o client.Object) stamp {
	var s stamp
	if writer, ok := o.GetAnnotations()[v1alpha1.AnnotationWriter]; ok {
		s.Writer = &writer
	}
	if groups, ok := o.GetAnnotations()[v1alpha1.AnnotationWriterGroups]; ok {
		s.Groups = &groups
	}
	return s
}

// write is one patch of an object by somebody.
type write struct {
	user   string
	groups []string
	kind   types.PatchType
	patch  string
}

const (
	setImage = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`
	forge    = `{"metadata":{"annotations":{"plumbline.dev/writer":"ci","plumbline.dev/writer-groups":"devs"}}}`
)

func merge(user, patch string, groups ...string) write {
	return write{user: user, groups: groups, kind: types.MergePatchType, patch: patch}
}

func strategic(user, patch string, groups ...string) write {
	return write{user: user, groups: groups, kind: types.StrategicMergePatchType, patch: patch}
}

func jsonPatch(user, patch string) write {
	return write{user: user, kind: types.JSONPatchType, patch: patch}
}

func TestAnObjectCarriesTheNameOfWhoLastChangedItsContent(t *testing.T) {
	needsStampingPolicy(t)
	tests := map[string]struct {
		writes []write // after the creation by alice
		want   stamp
		// generation the object has in the end; an annotation change that is
		// undone in the same request does not raise it.
		generation int64
	}{
		"created by alice":                           {nil, by("alice"), 1},
		"an image set by bob is his":                 {[]write{strategic("bob", setImage)}, by("bob"), 2},
		"a forged stamp does not land":               {[]write{merge("bob", forge)}, by("alice"), 1},
		"a removed stamp comes back":                 {[]write{merge("bob", `{"metadata":{"annotations":{"plumbline.dev/writer":null}}}`)}, by("alice"), 1},
		"all annotations removed, the stamp is back": {[]write{merge("bob", `{"metadata":{"annotations":null}}`)}, by("alice"), 1},
		"a label is no content":                      {[]write{merge("bob", `{"metadata":{"labels":{"team":"b"}}}`)}, by("alice"), 1},
		"an annotation of others is no content":      {[]write{merge("bob", `{"metadata":{"annotations":{"note":"b"}}}`)}, by("alice"), 2},
		"content and a forgery in one write": {[]write{strategic("bob",
			`{"metadata":{"annotations":{"plumbline.dev/writer":"ci"}},"spec":{"paused":true}}`)}, by("bob"), 2},
		"rollout undo replays old annotations and loses": {[]write{strategic("ci", setImage), jsonPatch("bob",
			`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"shop:1"},{"op":"replace","path":"/metadata/annotations","value":{"plumbline.dev/writer":"alice"}}]`)}, by("bob"), 3},
		"annotations replaced as a whole, without content": {[]write{jsonPatch("bob",
			`[{"op":"replace","path":"/metadata/annotations","value":{"plumbline.dev/writer":"mallory"}}]`)}, by("alice"), 1},
		"a write that changes nothing":      {[]write{merge("bob", `{"spec":{"replicas":1}}`)}, by("alice"), 1},
		"rollout restart is a write of his": {[]write{merge("bob", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}}`)}, by("bob"), 2},
		"an owner added by a tenant frees nothing": {[]write{
			merge("bob", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"x","uid":"u","controller":true}]}}`),
			strategic("bob", setImage)}, by("bob"), 2},
		"groups that the installation stamps, sorted": {[]write{strategic("dora", setImage, "tenants", "ops", "devs", "others")},
			stamp{Writer: new("dora"), Groups: new("devs,ops")}, 2},
		"groups of the last writer only": {[]write{
			strategic("dora", setImage, "tenants", "devs"), merge("bob", `{"spec":{"paused":true}}`)}, by("bob"), 3},
		"a forged group is removed":  {[]write{merge("bob", `{"metadata":{"annotations":{"plumbline.dev/writer-groups":"ops"}}}`)}, by("alice"), 1},
		"a removed group comes back": {[]write{strategic("dora", setImage, "tenants", "ops"), merge("bob", `{"metadata":{"annotations":{"plumbline.dev/writer-groups":null}}}`)}, stamp{new("dora"), new("ops")}, 2},
		"a group name with quotes and angle brackets": {[]write{strategic("dora", setImage, "tenants", `quoted "group" <a>`)},
			stamp{new("dora"), new(`quoted "group" <a>`)}, 2},
		"a user of a thousand groups": {[]write{strategic("dora", setImage, append(manyGroups(1000), "tenants", "ops")...)},
			stamp{new("dora"), new("ops")}, 2},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("writer-%d", number)
		t.Run(name, func(t *testing.T) {
			d := deployment(objectName)
			if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
				t.Fatalf("creating as alice: %v", err)
			}
			for _, w := range test.writes {
				apply(t, d, w)
			}
			if diff := cmp.Diff(test.want, stampOf(d)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
			if d.Generation != test.generation {
				t.Errorf("generation = %d, want %d", d.Generation, test.generation)
			}
		})
	}
}

func apply(t *testing.T, o client.Object, w write) {
	t.Helper()
	groups := w.groups
	if groups == nil {
		groups = []string{"tenants"}
	}
	if err := mustBe(t, w.user, groups...).Patch(t.Context(), o, client.RawPatch(w.kind, []byte(w.patch))); err != nil {
		t.Fatalf("patching as %s with %s: %v", w.user, w.patch, err)
	}
}

func TestACreationWithAForgedStampIsTheCreators(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("forged-at-birth")
	d.Annotations = map[string]string{v1alpha1.AnnotationWriter: "ci", v1alpha1.AnnotationWriterGroups: "ops"}
	if err := mustBe(t, "mallory", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(by("mallory"), stampOf(d)); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}

func TestAnObjectOlderThanThePolicy(t *testing.T) {
	needsStampingPolicy(t)
	legacy := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "legacy", Namespace: tenant}}
	apply(t, legacy, merge("mallory", forge))
	if diff := cmp.Diff(stamp{}, stampOf(legacy)); diff != "" {
		t.Errorf("a forged stamp on an object without one stays off (-want +got):\n%s", diff)
	}
	apply(t, legacy, strategic("bob", setImage))
	if diff := cmp.Diff(by("bob"), stampOf(legacy)); diff != "" {
		t.Errorf("stamp of the first write after it (-want +got):\n%s", diff)
	}
}

func TestAPutWithoutAnnotationsKeepsTheStamp(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("put")
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	bob := mustBe(t, "bob", "tenants")
	if err := bob.Update(t.Context(), deployment("put")); err != nil {
		t.Fatal(err)
	}
	got := deployment("put")
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(by("alice"), stampOf(got)); diff != "" {
		t.Errorf("after a PUT of equal content (-want +got):\n%s", diff)
	}
	changed := deployment("put")
	changed.Spec.Replicas = new(int32(4))
	if err := bob.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(by("bob"), stampOf(changed)); diff != "" {
		t.Errorf("after a PUT of other content (-want +got):\n%s", diff)
	}
}

func TestAScaleLeavesTheStampAsItIs(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("scaled")
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if err := mustBe(t, "bob", "tenants").SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	if got := *d.Spec.Replicas; got != 5 {
		t.Fatalf("replicas = %d, want 5", got)
	}
	if diff := cmp.Diff(by("alice"), stampOf(d)); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}

func TestServerSideApplyNeitherOwnsNorFightsOverTheStamp(t *testing.T) {
	needsStampingPolicy(t)
	apply := func(user string, replicas int64) *unstructured.Unstructured {
		o := object("apps/v1", "Deployment", "applied", map[string]any{"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}}},
		}})
		if err := mustBe(t, user, "tenants").Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("gitops")); err != nil {
			t.Fatalf("applying as %s: %v", user, err)
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	steps := []struct {
		user     string
		replicas int64
		want     stamp
	}{{"alice", 1, by("alice")}, {"bob", 1, by("alice")}, {"bob", 2, by("bob")}, {"alice", 2, by("bob")}}
	for _, step := range steps {
		got := apply(step.user, step.replicas)
		if diff := cmp.Diff(step.want, stampOf(got)); diff != "" {
			t.Errorf("after %s applied %d replicas (-want +got):\n%s", step.user, step.replicas, diff)
		}
		for _, entry := range got.GetManagedFields() {
			if strings.Contains(entry.FieldsV1.GetRawString(), "plumbline.dev/writer") {
				t.Errorf("manager %s owns the stamp", entry.Manager)
			}
		}
	}
}

// An owner must not decide whether a stamp is evidence: C1 of the guard's review.
func TestAnOwnerMakesNoDifferenceToTheStamp(t *testing.T) {
	needsStampingPolicy(t)
	owner := func(apiVersion, kind string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "web", "uid": "0", "controller": true}
	}
	tests := map[string]struct {
		owner map[string]any // of a ReplicaSet
		want  stamp
	}{
		"a ReplicaSet of a Deployment":            {owner("apps/v1", "Deployment"), by("alice")},
		"a ReplicaSet on its own":                 {nil, by("alice")},
		"a ReplicaSet of a custom controller":     {owner("example.com/v1", "Deployment"), by("alice")},
		"a ReplicaSet of something in core":       {owner("v1", "Deployment"), by("alice")},
		"a ReplicaSet that a CronJob cannot make": {owner("batch/v1", "CronJob"), by("alice")},
	}
	number := 0
	for name, test := range tests {
		number++
		rs := replicaSet(fmt.Sprintf("owned-%d", number), test.owner)
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, "alice", "roots").Create(t.Context(), rs); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, stampOf(rs)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
			apply(t, rs, write{user: "mallory", groups: []string{"roots"}, kind: types.MergePatchType, patch: forge})
			if diff := cmp.Diff(test.want, stampOf(rs)); diff != "" {
				t.Errorf("after a forgery (-want +got):\n%s", diff)
			}
			apply(t, rs, write{user: "mallory", groups: []string{"roots"}, kind: types.MergePatchType, patch: `{"spec":{"replicas":9}}`})
			if diff := cmp.Diff(by("mallory"), stampOf(rs)); diff != "" {
				t.Errorf("after a change (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOwnerAddedWithTheChangeFreesNothing(t *testing.T) {
	needsStampingPolicy(t)
	rs := replicaSet("adopted", nil)
	if err := mustBe(t, "alice", "roots").Create(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	apply(t, rs, merge("mallory", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"x","uid":"u","controller":true}],
		"annotations":{"plumbline.dev/writer":"ci"}},"spec":{"replicas":9}}`, "roots"))
	if diff := cmp.Diff(by("mallory"), stampOf(rs)); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}

func replicaSet(name string, owner map[string]any) *unstructured.Unstructured {
	rs := object("apps/v1", "ReplicaSet", name, map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}}},
	}})
	if owner != nil {
		rs.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	}
	return rs
}

func TestExcludedNamespacesAreLeftAlone(t *testing.T) {
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "plumbline-system"} {
		t.Run(namespace, func(t *testing.T) {
			d := deployment("excluded")
			d.Namespace = namespace
			if err := admin.Create(t.Context(), d, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stamp{}, stampOf(d)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
		})
	}
}
