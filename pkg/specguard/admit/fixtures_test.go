// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	noon          = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// ci is trusted by the guards of these tests, alice is nobody to them.
const (
	ci       = "system:serviceaccount:cicd:deployer"
	hpa      = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	executor = "system:serviceaccount:plumbline-system:plumbline-executor"
	alice    = "alice"
)

func guardSpec(change func(*v1alpha1.GuardSpec)) v1alpha1.GuardSpec {
	spec := v1alpha1.GuardSpec{
		Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		Mode:      v1alpha1.GuardModeWarn,
		TrustedWriters: v1alpha1.Writers{
			ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}},
		},
		ExpectedWriters: []v1alpha1.ExpectedWriter{{
			Name:    "hpa",
			Writers: v1alpha1.Writers{Users: []string{hpa}},
			Paths:   []string{"/spec/replicas"},
		}},
	}
	if change != nil {
		change(&spec)
	}
	return spec
}

// snapshotOf has one guard in namespace shop; a nil change is a guard on all
// Deployments there that warns.
func snapshotOf(t testing.TB, change func(*v1alpha1.GuardSpec)) *Snapshot {
	t.Helper()
	guard, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "g"}, guardSpec(change), nil, noon.Add(-time.Hour))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return &Snapshot{
		Guards:  specguard.NewGuardSet([]*specguard.Guard{guard}, []string{"kube-system"}, specguard.System{Executor: executor}),
		Parents: map[GroupResource]canon.GVK{{"apps", "deployments"}: deploymentGVK},
	}
}

// recorder keeps records in memory.
type recorder struct {
	mu      sync.Mutex
	records []specguard.WriteRecord
}

func (r *recorder) Enqueue(rec specguard.WriteRecord) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
	return true
}

func newReviewer(t testing.TB, change func(*v1alpha1.GuardSpec)) (*Reviewer, *recorder) {
	snapshot, rec := snapshotOf(t, change), &recorder{}
	return &Reviewer{
		Snapshot: func() *Snapshot { return snapshot },
		Recorder: rec,
		Now:      func() time.Time { return noon },
	}, rec
}

// deployment is a small object as the API server sends it; edits change the
// decoded form.
func deployment(t testing.TB, edits ...func(map[string]any)) []byte {
	t.Helper()
	var o map[string]any
	const text = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u-1",
		"resourceVersion":"275","generation":1,"labels":{"app":"web"}},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"app","image":"shop/web:1","env":[{"name":"A","value":"1"}]}]}}},"status":{"replicas":2}}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(o)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// set replaces the value at a dotted path; a nil value removes it.
func set(path string, value any) func(map[string]any) {
	return func(o map[string]any) {
		keys := strings.Split(path, ".")
		var at any = o
		for _, key := range keys[:len(keys)-1] {
			switch c := at.(type) {
			case map[string]any:
				if c[key] == nil {
					c[key] = map[string]any{}
				}
				at = c[key]
			case []any:
				i, err := strconv.Atoi(key)
				if err != nil {
					panic(err)
				}
				at = c[i]
			}
		}
		last, m := keys[len(keys)-1], at.(map[string]any)
		if value == nil {
			delete(m, last)
			return
		}
		m[last] = value
	}
}

// annotations replaces all annotations; their keys have dots.
func annotations(kv ...string) func(map[string]any) {
	return func(o map[string]any) {
		m := map[string]any{}
		for pair := range slices.Chunk(kv, 2) {
			m[pair[0]] = pair[1]
		}
		o["metadata"].(map[string]any)["annotations"] = m
	}
}

func image(name string) func(map[string]any) {
	return func(o map[string]any) {
		set("spec.template.spec.containers.0.image", name)(o)
	}
}

// update is a review of an update by a user.
func update(user string, object, old []byte) *Review {
	return &Review{
		UID: "r-1", Kind: deploymentGVK, Resource: Resource{"apps", "v1", "deployments"},
		Name: "web", Namespace: "shop", Operation: specguard.OperationUpdate,
		Identity: specguard.Identity{User: user, Groups: []string{"system:authenticated"}},
		Object:   object, OldObject: old, FieldManager: "kubectl-edit",
	}
}

func create(user string, object []byte) *Review {
	r := update(user, object, nil)
	r.Operation = specguard.OperationCreate
	return r
}

func deletion(user string, old []byte) *Review {
	r := update(user, nil, old)
	r.Operation = specguard.OperationDelete
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
	r.Kind = canon.GVK{Group: "autoscaling", Version: "v1", Kind: "Scale"}
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
		"userInfo": map[string]any{"username": r.Identity.User, "groups": r.Identity.Groups, "extra": map[string][]string{"a": {"b"}}},
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

// bigDeployment has about the given size in bytes, half of it containers with
// environments, half managedFields, as live objects have.
func bigDeployment(t testing.TB, size int, edits ...func(map[string]any)) []byte {
	t.Helper()
	var env []any
	fields := map[string]any{}
	for n := 0; n*172 < size; n++ {
		env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%04d", n), "value": strings.Repeat("v", 40+n%60)})
		fields[fmt.Sprintf(`k:{"name":"SETTING_%04d"}`, n)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
	}
	managed := []any{map[string]any{"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "apps/v1",
		"fieldsType": "FieldsV1", "time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:spec": fields}}}
	return deployment(t, append([]func(map[string]any){
		set("spec.template.spec.containers.0.env", env),
		set("metadata.managedFields", managed),
	}, edits...)...)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
