// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

const forged = "pl1:sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestAForgedStampIsPutRight(t *testing.T) {
	withForgery := webDeployment()
	withForgery.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: forged, v1alpha1.AnnotationWriter: "root", v1alpha1.AnnotationWriterGroups: "ops"}
	set := func(key, value string) func(*place) {
		return func(p *place) { p.mustKubectl(alice, "", "annotate", "--overwrite", "deployment", "web", key+value) }
	}
	tests := map[string]func(p *place){
		"by annotate":             set(v1alpha1.AnnotationSpecHash, "="+forged),
		"the writer, by annotate": set(v1alpha1.AnnotationWriter, "=root"),
		"removed by annotate":     set(v1alpha1.AnnotationSpecHash, "-"),
		"the writer, removed":     set(v1alpha1.AnnotationWriter, "-"),
		"groups, by annotate":     set(v1alpha1.AnnotationWriterGroups, "=ops"),
		"by apply":                func(p *place) { p.mustKubectl(alice, manifest(t, withForgery), "apply", "-f", "-") },
		"by apply --server-side": func(p *place) {
			p.mustKubectl(alice, manifest(t, withForgery), "apply", "--server-side", "--force-conflicts", "-f", "-")
		},
		"by replace": func(p *place) { p.mustKubectl(alice, manifest(t, withForgery), "replace", "-f", "-") },
		"left out of a PUT": func(p *place) {
			p.mustKubectl(alice, manifest(t, webDeployment()), "replace", "-f", "-")
		},
	}
	for name, forge := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, unchanged)
			p.deploy(ci)
			forge(p)
			p.mustBeStamped(ci)
			if _, annotations := p.live(); annotations[v1alpha1.AnnotationWriterGroups] != "" {
				t.Errorf("groups %q", annotations[v1alpha1.AnnotationWriterGroups])
			}
		})
	}
	t.Run("together with a change of the content", func(t *testing.T) {
		p := newPlace(t, unchanged)
		p.deploy(ci)
		err := p.patch(alice, `{"metadata":{"annotations":{"plumbline.dev/writer":"`+ci+`","plumbline.dev/spec-hash":"`+forged+`"}},"spec":{"replicas":4}}`)
		if err != nil {
			t.Fatal(err)
		}
		p.mustBeStamped(alice)
	})
	t.Run("through /status it stays until the next write of the object", func(t *testing.T) {
		// Refusing it is the work of an in-process policy, not of this webhook.
		p := newPlace(t, unchanged)
		p.deploy(ci)
		if err := p.patch(alice, `{"metadata":{"annotations":{"plumbline.dev/spec-hash":"`+forged+`"}}}`, "status"); err != nil {
			t.Fatal(err)
		}
		if _, annotations := p.live(); annotations[v1alpha1.AnnotationSpecHash] != forged {
			t.Fatal("the API server refused it: the case has to go, and the page to change")
		}
		p.mustKubectl(alice, "", "label", "deployment", "web", "x=y")
		p.mustBeStamped(ci)
	})
}

// kubectl rollout undo sends two operations: the old template and all of the
// old ReplicaSet's annotations, our old stamps among them. The ReplicaSet, which
// the controller manager would make, is left out here.
func TestRolloutUndoReplaysAnOldStamp(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	oldBody, oldAnnotations := p.live()
	if err := p.patch(ci, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:2"}]}}}}`); err != nil {
		t.Fatal(err)
	}
	var old struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(oldBody, &old); err != nil {
		t.Fatal(err)
	}
	annotations, err := json.Marshal(oldAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	undo := fmt.Sprintf(`[{"op":"replace","path":"/spec/template","value":%s},{"op":"replace","path":"/metadata/annotations","value":%s}]`, old.Spec.Template, annotations)
	if _, err := as(t, alice).AppsV1().Deployments(p.namespace).Patch(t.Context(), "web", types.JSONPatchType, []byte(undo), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.mustBeStamped(alice)
	rec := p.waitRecord("the undo", func(r specguard.WriteRecord) bool { return r.User == alice })
	if rec.FieldManager != "" {
		t.Errorf("field manager %q; undo sends none", rec.FieldManager)
	}
}

func TestGenerateName(t *testing.T) {
	p := newPlace(t, unchanged)
	d := webDeployment()
	d.Name, d.GenerateName = "", "gen-"
	made, err := as(t, alice, "ops", "other").AppsV1().Deployments(p.namespace).Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Annotations[v1alpha1.AnnotationSpecHash] == "" || made.Annotations[v1alpha1.AnnotationWriter] != alice || made.Annotations[v1alpha1.AnnotationWriterGroups] != "ops" {
		t.Errorf("annotations %v", made.Annotations)
	}
	rec := p.waitRecord("the creation", func(r specguard.WriteRecord) bool { return r.Name == made.Name })
	if rec.UID != string(made.UID) || rec.HashAfter != made.Annotations[v1alpha1.AnnotationSpecHash] {
		t.Errorf("record %+v, want uid %s", rec, made.UID)
	}
}

func TestUnguardedObjectsAreLeftAlone(t *testing.T) {
	p := newPlace(t, func(s *v1alpha1.GuardSpec) { s.Selector = selector("guarded", "yes") })
	p.deploy(alice)
	_, stderr := p.mustKubectl(alice, "", "set", "image", "deployment/web", "app=x:2")
	if stderr != "" {
		t.Errorf("stderr %q", stderr)
	}
	if _, annotations := p.live(); len(annotations) != 0 {
		t.Errorf("annotations %v", annotations)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: p.namespace}, Data: map[string]string{"a": "b"}}
	if err := w.client.Create(t.Context(), cm); err != nil || len(cm.Annotations) != 0 {
		t.Errorf("a kind that no guard names: %v %v", err, cm.Annotations)
	}
}

func TestALargeObjectIsAssessed(t *testing.T) {
	p := newPlace(t, unchanged)
	d := webDeployment()
	// Just under what etcd stores; an update sends it twice.
	for n := range 12 {
		d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("BIG_%d", n), Value: strings.Repeat("x", 100<<10)})
	}
	if _, err := as(t, ci).AppsV1().Deployments(p.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.mustBeStamped(ci)
	_, stderr := p.mustKubectl(alice, "", "set", "image", "deployment/web", "app=x:2")
	if !strings.Contains(stderr, "Warning: plumbline:") {
		t.Errorf("stderr %q", stderr)
	}
	p.mustBeStamped(alice)
}

func TestATenantDoesNotLeaveByLabelOrOwner(t *testing.T) {
	p := newPlace(t, func(s *v1alpha1.GuardSpec) { s.Selector = selector("app", "web") })
	p.deploy(ci)
	err := p.patch(alice, `{"metadata":{"labels":null,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"1","controller":true}]},"spec":{"replicas":9}}`)
	if err != nil {
		t.Fatal(err)
	}
	p.mustBeStamped(alice)
	p.waitRecord("the change", func(r specguard.WriteRecord) bool { return r.User == alice && r.Generation == 2 })
}

// Another mutating webhook changes the object after ours; the API server calls
// ours again, and the stamp is that of the final object.
func TestReinvocation(t *testing.T) {
	patch := `[{"op":"add","path":"/spec/minReadySeconds","value":7}]`
	other := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(rw, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`,
			review.Request.UID, base64.StdEncoding.EncodeToString([]byte(patch)))
	}))
	defer other.Close()
	p := newPlace(t, unchanged)
	ignore, none := arv1.Fail, arv1.SideEffectClassNone
	config := &arv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-later"},
		Webhooks: []arv1.MutatingWebhook{{
			Name: "later.example.com", FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      arv1.WebhookClientConfig{URL: &other.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})},
			NamespaceSelector: selector("kubernetes.io/metadata.name", p.namespace),
			Rules:             []arv1.RuleWithOperations{rules([]arv1.OperationType{arv1.Create}, "apps", "deployments")},
		}},
	}
	if err := w.client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.client.Delete(t.Context(), config); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the other webhook is called", func() bool {
		made, err := as(t, ci).AppsV1().Deployments(p.namespace).Create(t.Context(), webDeployment(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && made.Spec.MinReadySeconds == 7
	})
	before := w.hook.metric("plumbline_admission_reviews_total", `handler="mutate"`)
	p.deploy(ci)
	p.mustBeStamped(ci)
	if n := w.hook.metric("plumbline_admission_reviews_total", `handler="mutate"`) - before; n != 2 {
		t.Errorf("the mutating webhook was called %v times, want 2", n)
	}
}
