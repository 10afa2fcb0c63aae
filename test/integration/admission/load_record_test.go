// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	arv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// replayNamespace is what the recorded reviews speak of.
const replayNamespace = "replay"

func recordsFile() string {
	return filepath.Join("..", "..", "..", "hack", "admitload", "testdata", "reviews.ndjson")
}

func recorded(t testing.TB) []replay.Record {
	t.Helper()
	file, err := os.Open(recordsFile())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	records, err := replay.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func target(h *process) string { return fmt.Sprintf("https://127.0.0.1:%d", h.port) }

// publishedRoots is what the API server trusts.
func publishedRoots(t testing.TB) *x509.CertPool {
	t.Helper()
	m, err := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(m.Webhooks[0].ClientConfig.CABundle)
	return roots
}

// benchPlace makes a namespace of a given name; benchmarks have no *testing.T.
type namedPlace struct {
	t         testing.TB
	namespace string
}

func benchPlace(t testing.TB, namespace string) namedPlace {
	t.Helper()
	err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) { // A namespace is never quite gone without its controller.
		t.Fatal(err)
	}
	return namedPlace{t, namespace}
}

func (p namedPlace) guardNamed(name string) {
	p.t.Helper()
	g := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.namespace},
		Spec: v1alpha1.GuardSpec{
			Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Mode:           v1alpha1.GuardModeWarn,
			TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}}},
		},
	}
	if err := w.client.Create(p.t.Context(), g); err != nil && !apierrors.IsAlreadyExists(err) {
		p.t.Fatal(err)
	}
}

// recorder is a webhook that keeps what it gets.
type recorder struct {
	mu      sync.Mutex
	records []replay.Record
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var review struct {
		Request struct {
			UID, Operation, SubResource string
			Resource                    struct{ Resource string }
		}
	}
	if err != nil || json.Unmarshal(body, &review) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	of := review.Request.Resource.Resource
	if review.Request.SubResource != "" {
		of += "/" + review.Request.SubResource
	}
	r.mu.Lock()
	r.records = append(r.records, replay.Record{Label: review.Request.Operation + " " + of, Path: req.URL.Path, Review: bytes.TrimSpace(body)})
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// register lets the API server call the recorder for one namespace.
func (r *recorder) register(t *testing.T, server *httptest.Server, namespace string) {
	t.Helper()
	ar := w.kube.AdmissionregistrationV1()
	m, err := ar.MutatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := ar.ValidatingWebhookConfigurations().Get(t.Context(), "plumbline", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca := pemOf("CERTIFICATE", server.Certificate().Raw)
	only := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	at := func(path string) arv1.WebhookClientConfig {
		url := server.URL + path
		return arv1.WebhookClientConfig{URL: &url, CABundle: ca}
	}
	never := arv1.NeverReinvocationPolicy
	m.ObjectMeta = metav1.ObjectMeta{Name: "recorder"}
	m.Webhooks[0].Name, m.Webhooks[0].ClientConfig, m.Webhooks[0].NamespaceSelector = "recorder.example.com", at("/mutate"), only
	m.Webhooks[0].ReinvocationPolicy = &never
	v.ObjectMeta = metav1.ObjectMeta{Name: "recorder"}
	v.Webhooks[0].Name, v.Webhooks[0].ClientConfig, v.Webhooks[0].NamespaceSelector = "recorder.example.com", at("/validate"), only
	if _, err := ar.MutatingWebhookConfigurations().Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ar.ValidatingWebhookConfigurations().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *recorder) unregister(t *testing.T) {
	ar := w.kube.AdmissionregistrationV1()
	if err := ar.MutatingWebhookConfigurations().Delete(t.Context(), "recorder", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := ar.ValidatingWebhookConfigurations().Delete(t.Context(), "recorder", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

// largeEnv makes a Deployment of about 20 KiB with its managedFields.
func largeEnv(d *appsv1.Deployment) {
	env := &d.Spec.Template.Spec.Containers[0].Env
	for n := range 115 {
		*env = append(*env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%04d", n), Value: strings.Repeat("v", 40+n%60)})
	}
}

// shape is what two recordings have in common: all but values.
func shape(t *testing.T, records []replay.Record) []string {
	t.Helper()
	var out []string
	for _, r := range records {
		var review struct{ Request map[string]json.RawMessage }
		if err := json.Unmarshal(r.Review, &review); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for key, value := range review.Request {
			keys = append(keys, fmt.Sprintf("%s:%c", key, value[0]))
		}
		slices.Sort(keys)
		out = append(out, r.Path+" "+r.Label+" "+strings.Join(keys, " "))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The reviews that the load driver replays are those of a real API server.
// UPDATE_GOLDEN=1 records them again.
func TestTheRecordedReviewsAreThoseOfTheAPIServer(t *testing.T) {
	r := &recorder{}
	server := httptest.NewTLSServer(r)
	defer server.Close()
	p := newPlace(t, unchanged)
	r.register(t, server, p.namespace)
	defer r.unregister(t)
	eventually(t, "the recorder is called", func() bool {
		d := webDeployment()
		d.Name = "probe"
		if _, err := w.kube.AppsV1().Deployments(p.namespace).Create(t.Context(), d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		return r.count() >= 2
	})
	r.mu.Lock()
	r.records = nil
	r.mu.Unlock()
	steps := []func() error{
		func() error { p.deploy(ci, largeEnv); return nil },
		func() error {
			_, err := as(t, alice).AppsV1().Deployments(p.namespace).Patch(t.Context(), "web", types.StrategicMergePatchType,
				[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:2"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-set"})
			return err
		},
		func() error { return p.patch(alice, `{"spec":{"replicas":3}}`, "scale") },
		func() error {
			return as(t, ci).AppsV1().Deployments(p.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})
		},
		func() error { p.deploy(ci); return nil },
		func() error { return p.patch(alice, `{"metadata":{"labels":{"team":"shop"}}}`) },
	}
	for n, step := range steps {
		p.settle()
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	got := r.records
	if golden.Updates() {
		for i := range got {
			got[i].Review = bytes.ReplaceAll(got[i].Review, []byte(`"`+p.namespace+`"`), []byte(`"`+replayNamespace+`"`))
		}
		var file bytes.Buffer
		if err := replay.Save(&file, got); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(recordsFile()), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recordsFile(), file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(shape(t, recorded(t)), shape(t, got)); diff != "" {
		t.Errorf("the API server sends other reviews now; UPDATE_GOLDEN=1 records them (-recorded +now)\n%s", diff)
	}
}

// benchSeconds is how long each rate is held.
func benchSeconds(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("PLUMBLINE_BENCH_DURATION")
	if text == "" {
		text = "10s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
