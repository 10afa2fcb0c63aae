// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/manifest"
)

var (
	deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	noon          = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ci is trusted by the guards of these tests, alice is nobody to them.
const (
	ci       = "system:serviceaccount:cicd:deployer"
	hpa      = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	executor = "system:serviceaccount:plumbline-system:plumbline-executor"
	alice    = "alice"

	jsonType = "application/json"
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

// update is a review of an update by a user.
func update(user string, object, old []byte) *admission.Review {
	return &admission.Review{
		UID: "r-1", Kind: schema.GroupVersionKind(deploymentGVK), Resource: admission.Resource{Group: "apps", Version: "v1", Resource: "deployments"},
		Name: "web", Namespace: "shop", Operation: admissionv1.Update,
		User: user, Groups: []string{"system:authenticated"},
		Object: object, OldObject: old, FieldManager: "kubectl-edit",
	}
}

func create(user string, object []byte) *admission.Review {
	r := update(user, object, nil)
	r.Operation = admissionv1.Create
	return r
}

func deletion(user string, old []byte) *admission.Review {
	r := update(user, nil, old)
	r.Operation = admissionv1.Delete
	return r
}

func scale(t testing.TB, user string, before, after any) *admission.Review {
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

// deployment is a small object as the API server sends it; edits change the decoded form.
func deployment(t testing.TB, edits ...func(map[string]any)) []byte {
	t.Helper()
	return manifest.Deployment(t, edits...)
}

func set(path string, value any) func(map[string]any) { return manifest.Set(path, value) }

func image(name string) func(map[string]any) { return manifest.Image(name) }

// envelope is a review as the API server sends it.
func envelope(t testing.TB, r *admission.Review) []byte {
	t.Helper()
	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(r.UID), Kind: metav1.GroupVersionKind(r.Kind), Resource: metav1.GroupVersionResource(r.Resource),
			RequestKind: new(metav1.GroupVersionKind(r.Kind)), RequestResource: new(metav1.GroupVersionResource(r.Resource)),
			SubResource: r.SubResource, Name: r.Name, Namespace: r.Namespace, Operation: r.Operation, DryRun: &r.DryRun,
			UserInfo: authenticationv1.UserInfo{Username: r.User, Groups: r.Groups},
			Object:   runtime.RawExtension{Raw: r.Object}, OldObject: runtime.RawExtension{Raw: r.OldObject},
			Options: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":%q}`, r.FieldManager)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
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
