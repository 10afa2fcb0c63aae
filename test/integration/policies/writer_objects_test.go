// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

func manyGroups(n int) []string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprintf("cn=group-%04d,ou=people,dc=example,dc=com", i)
	}
	return groups
}

func TestKindsWithoutSpecAreStampedByTheirContent(t *testing.T) {
	needsStampingPolicy(t)
	tests := map[string]struct {
		object *unstructured.Unstructured
		patch  string
		want   stamp
	}{
		"data of a ConfigMap":                   {object("v1", "ConfigMap", "data", map[string]any{"data": map[string]any{"a": "1"}}), `{"data":{"a":"2"}}`, by("bob")},
		"binaryData added to a ConfigMap":       {object("v1", "ConfigMap", "binary", nil), `{"binaryData":{"a":"AQ=="}}`, by("bob")},
		"data removed from a ConfigMap":         {object("v1", "ConfigMap", "removed", map[string]any{"data": map[string]any{"a": "1"}}), `{"data":null}`, by("bob")},
		"a ConfigMap made immutable":            {object("v1", "ConfigMap", "immutable", nil), `{"immutable":true}`, by("bob")},
		"a label of a ConfigMap":                {object("v1", "ConfigMap", "label", nil), `{"metadata":{"labels":{"a":"b"}}}`, by("alice")},
		"the spec of a custom resource":         {object("example.com/v1", "Widget", "spec", map[string]any{"spec": map[string]any{"n": int64(1)}}), `{"spec":{"n":2}}`, by("bob")},
		"another field of a custom resource":    {object("example.com/v1", "Widget", "field", map[string]any{"recipe": "a"}), `{"recipe":"b"}`, by("bob")},
		"a field added to a custom resource":    {object("example.com/v1", "Widget", "added", nil), `{"recipe":{"deep":[1,2]}}`, by("bob")},
		"a forgery on a custom resource":        {object("example.com/v1", "Widget", "forged", nil), forge, by("alice")},
		"2^53 and 2^53+1 differ":                {object("example.com/v1", "Widget", "big", map[string]any{"n": int64(9007199254740992)}), `{"n":9007199254740993}`, by("bob")},
		"annotations of a custom resource null": {object("example.com/v1", "Widget", "null", map[string]any{"n": int64(1)}), `{"metadata":{"annotations":null},"n":2}`, by("bob")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, "alice", "roots").Create(t.Context(), test.object); err != nil {
				t.Fatal(err)
			}
			apply(t, test.object, write{user: "bob", groups: []string{"roots"}, kind: types.MergePatchType, patch: test.patch})
			if diff := cmp.Diff(test.want, stampOf(test.object)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStampLeavesBigNumbersOfACustomResourceAlone(t *testing.T) {
	o := object("example.com/v1", "Widget", "exact", map[string]any{"n": int64(9007199254740993), "f": 1.5})
	if err := mustBe(t, "alice", "roots").Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"n": int64(9007199254740993), "f": 1.5}, map[string]any{"n": o.Object["n"], "f": o.Object["f"]}); diff != "" {
		t.Errorf("stored numbers (-want +got):\n%s", diff)
	}
}

func TestObjectsThatTheAPIServerAcceptsStayAccepted(t *testing.T) {
	needsStampingPolicy(t)
	doubled := deployment("doubled-env")
	doubled.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
	doubledPorts := deployment("doubled-ports")
	doubledPorts.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 80, Name: "again"}}
	large := deployment("large")
	for i := range 12000 {
		large.Spec.Template.Spec.Containers[0].Env = append(large.Spec.Template.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%05d", i), Value: strings.Repeat("x", 40)})
	}
	longName := deployment("long-user")
	tests := map[string]struct {
		object *appsv1.Deployment
		user   string
	}{
		"an env list that names a variable twice": {doubled, "alice"},
		"a port listed twice":                     {doubledPorts, "alice"},
		"an object near the size limit":           {large, "alice"},
		"a user name of a thousand bytes":         {longName, strings.Repeat("u", 1000)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, test.user, "tenants").Create(t.Context(), test.object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(by(test.user), stampOf(test.object)); diff != "" {
				t.Errorf("stamp after creation (-want +got):\n%s", diff)
			}
			apply(t, test.object, merge("bob", `{"spec":{"paused":true}}`))
			if diff := cmp.Diff(by("bob"), stampOf(test.object)); diff != "" {
				t.Errorf("stamp after a change (-want +got):\n%s", diff)
			}
		})
	}
}

// One test for writer and status policy: the API server itself takes seconds
// for each write of such an object.
func TestAnObjectFullOfAnnotationsIsStampedAndKeepsItsStamp(t *testing.T) {
	needsStampingPolicy(t)
	rotation.Share(t, 3)
	d := deployment("annotated")
	d.Annotations = manyAnnotations()
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	apply(t, d, merge("bob", `{"spec":{"paused":true}}`))
	if diff := cmp.Diff(by("bob"), stampOf(d)); diff != "" {
		t.Errorf("stamp after a change (-want +got):\n%s", diff)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":2}}`))
	if err := admin.Status().Patch(t.Context(), d, status); err != nil {
		t.Errorf("a status write that leaves annotations alone: %v", err)
	}
	if err := admin.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(forge))); !apierrors.IsForbidden(err) {
		t.Errorf("a forgery among so many annotations = %v, want forbidden", err)
	}
}

// manyAnnotations fills the 256 KiB that annotations may take with keys as short
// as they can be, less some room for the stamp: the worst for an expression that
// walks over them.
func manyAnnotations() map[string]string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	annotations := map[string]string{}
	for i := range 85000 {
		key := []byte{alphabet[i%62], alphabet[i/62%62], alphabet[i/62/62%62]}
		annotations[string(key)] = ""
	}
	return annotations
}

func TestTheOtherDefaultKindsAreStamped(t *testing.T) {
	needsStampingPolicy(t)
	pod := map[string]any{"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}}
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": pod}
	selector := map[string]any{"matchLabels": map[string]any{"app": "a"}}
	tests := map[string]*unstructured.Unstructured{
		"StatefulSet": object("apps/v1", "StatefulSet", "kinds", map[string]any{"spec": map[string]any{"selector": selector, "template": template, "serviceName": "a"}}),
		"DaemonSet":   object("apps/v1", "DaemonSet", "kinds", map[string]any{"spec": map[string]any{"selector": selector, "template": template}}),
		"CronJob": object("batch/v1", "CronJob", "kinds", map[string]any{"spec": map[string]any{"schedule": "0 0 * * *",
			"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": pod["containers"]}}}}}}),
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, "alice", "tenants").Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(by("alice"), stampOf(o)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
			if err := mustBe(t, "bob", "tenants").Delete(t.Context(), o); err != nil {
				t.Errorf("deleting: %v", err)
			}
		})
	}
}
