// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/test/harness/manifest"
)

var (
	deploymentGVK = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	noon          = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

const (
	ci    = "system:serviceaccount:cicd:deployer"
	hpa   = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	alice = "alice"

	verdictAllow Verdict = "allow"
)

func deployment(t testing.TB, edits ...func(map[string]any)) []byte {
	t.Helper()
	return manifest.Deployment(t, edits...)
}

func set(path string, value any) func(map[string]any) { return manifest.Set(path, value) }

func image(name string) func(map[string]any) { return manifest.Image(name) }

// update is a review of an update by a user.
func update(user string, object, old []byte) *Review {
	return &Review{
		UID: "r-1", Kind: deploymentGVK, Resource: Resource{"apps", "v1", "deployments"},
		Name: "web", Namespace: "shop", Operation: admissionv1.Update,
		User: user, Groups: []string{"system:authenticated"},
		Object: object, OldObject: old, FieldManager: "kubectl-edit",
	}
}

func create(user string, object []byte) *Review {
	r := update(user, object, nil)
	r.Operation = admissionv1.Create
	return r
}

func deletion(user string, old []byte) *Review {
	r := update(user, nil, old)
	r.Operation = admissionv1.Delete
	return r
}

func scale(t testing.TB, user string, before, after any) *Review {
	t.Helper()
	body := func(replicas any) []byte {
		raw, err := json.Marshal(map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale",
			"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "275"},
			"spec":     map[string]any{"replicas": replicas},
		})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	r := update(user, body(after), body(before))
	r.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	r.SubResource = "scale"
	return r
}

// envelope is a review as the API server sends it, at 1.36.
func envelope(t testing.TB, r *Review) []byte {
	t.Helper()
	raw := func(b []byte) json.RawMessage {
		if b == nil {
			return json.RawMessage("null")
		}
		return b
	}
	gvk := metav1.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
	request := map[string]any{
		"uid": r.UID, "kind": gvk, "resource": r.Resource, "requestKind": gvk, "requestResource": r.Resource,
		"name": r.Name, "namespace": r.Namespace, "operation": r.Operation,
		"userInfo": map[string]any{"username": r.User, "groups": r.Groups, "extra": map[string][]string{"a": {"b"}}},
		"object":   raw(r.Object), "oldObject": raw(r.OldObject), "dryRun": r.DryRun,
		"options": map[string]any{"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": r.FieldManager},
	}
	if r.SubResource != "" {
		request["subResource"] = r.SubResource
	}
	out, err := json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": reviewAPIVersion, "request": request})
	if err != nil {
		t.Fatal(err)
	}
	// The order of the keys is that of the API server's type: the uid comes first.
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(out, &review); err != nil {
		t.Fatal(err)
	}
	if out, err = json.Marshal(review); err != nil {
		t.Fatal(err)
	}
	return out
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
