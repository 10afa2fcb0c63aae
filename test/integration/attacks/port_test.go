// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// pod is an attacker without credentials that reaches the webhook's port.
func pod(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // an attacker does not care who answers
		MaxConnsPerHost: 32, MaxIdleConnsPerHost: 32,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 60 * time.Second}
}

func post(t testing.TB, from *http.Client, path string, body []byte) (code int, answer string, err error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d%s", hookPort, path), bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := from.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }() // only read
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

// forgery is a review of a Deployment that no API server has sent.
type forgery struct {
	user        string
	operation   admissionv1.Operation
	subresource string
	before      *appsv1.Deployment
	after       any
}

func (f forgery) review(t testing.TB) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "forged", Operation: f.operation, Namespace: f.before.Namespace, Name: f.before.Name, SubResource: f.subresource,
		Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		UserInfo: authenticationv1.UserInfo{Username: f.user},
	}
	for place, o := range map[*runtime.RawExtension]any{&request.Object: f.after, &request.OldObject: f.before} {
		if raw := mustJSON(t, o); string(raw) != "null" {
			place.Raw = raw
		}
	}
	return mustJSON(t, admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// send posts a forgery to /validate and expects that it is answered.
func (f forgery) send(t testing.TB) {
	t.Helper()
	code, answer, err := post(t, pod(t), "/validate", f.review(t))
	if err != nil || code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
		t.Fatalf("%d %s (%v)", code, answer, err)
	}
}

// live reads a Deployment with its type, as reviews carry it.
func (p *place) live(name string) *appsv1.Deployment {
	p.t.Helper()
	d := p.named(name)
	p.must(admin.Get(p.t.Context(), client.ObjectKeyFromObject(d), d))
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	return d
}

// records are those of the namespace, whoever had them written.
func (p *place) records() []specguard.WriteRecord {
	p.t.Helper()
	messages, err := stream.XRange(p.t.Context(), "plumbline:details", "-", "+").Result()
	p.must(err)
	var found []specguard.WriteRecord
	for _, m := range messages {
		var r specguard.WriteRecord
		p.must(json.Unmarshal([]byte(m.Values["r"].(string)), &r))
		if r.Namespace == p.namespace {
			found = append(found, r)
		}
	}
	return found
}

// recorded waits until as many records of a user are there.
func (p *place) recorded(user string, operation specguard.Operation, count int) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("there are %d records of %s by %s", count, operation, user), func() error {
		n := 0
		for _, r := range p.records() {
			if r.User == user && r.Operation == operation {
				n++
			}
		}
		if n < count {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// S1: ten thousand reviews, most of them damaged, some of them whole.
func TestTenThousandPiecesOfGarbageOnThePortCrashNothingAndMoveNothing(t *testing.T) {
	const pieces, callers = 10_000, 16
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	seed := forgery{user: ci, operation: admissionv1.Update, before: p.live("web"), after: p.live("web")}.review(t)
	started, panics := p.metric("process_start_time_seconds"), p.metric("plumbline_admission_unassessed_total", `reason="panic"`)
	unassessed := p.metric("plumbline_admission_unassessed_total")
	var answered atomic.Int64
	var group sync.WaitGroup
	from := pod(t)
	for caller := range callers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 7)) //nolint:gosec // garbage that can be made again
			for n := range pieces / callers {
				path := []string{"/mutate", "/validate"}[n%2]
				if code, _, err := post(t, from, path, garbage(random, seed)); err != nil || code >= http.StatusInternalServerError {
					t.Errorf("piece %d of caller %d: %d %v", n, caller, code, err)
					continue
				}
				answered.Add(1)
			}
		})
	}
	group.Wait()
	if n := answered.Load(); n != pieces {
		t.Errorf("%d of %d were answered", n, pieces)
	}
	if n := p.metric("plumbline_admission_unassessed_total", `reason="panic"`) - panics; n != 0 {
		t.Errorf("%v panics\n%s", n, hook.Said())
	}
	if p.metric("process_start_time_seconds") != started || started <= 0 {
		t.Error("the webhook was started anew")
	}
	if n := p.metric("plumbline_admission_unassessed_total") - unassessed; n < pieces/10 {
		t.Errorf("%v reviews counted as unassessed, which is too few to be true", n)
	}
	p.setImage(as(t, mallory), "web", "registry.example/evil:1")
	p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	if stamped := p.live("web").Annotations[v1alpha1.AnnotationSpecHash]; !strings.HasPrefix(stamped, "pl1:sha256:") {
		t.Errorf("the webhook does not stamp any more: %q", stamped)
	}
}

// garbage damages a review: bytes changed, cut off, doubled, or all at random.
func garbage(random *rand.Rand, seed []byte) []byte {
	piece := bytes.Clone(seed)
	switch at := random.IntN(len(piece)); random.IntN(6) {
	case 0:
		piece = piece[:at]
	case 1:
		piece = append(piece[:at:at], seed[random.IntN(len(seed)):]...)
	case 2:
		for range 1 + random.IntN(2048) {
			piece[random.IntN(len(piece))] = byte(random.Uint32())
		}
	case 3:
		piece = bytes.Repeat([]byte(`[{"a":`), random.IntN(2000))
	case 4:
		piece = bytes.ReplaceAll(piece, []byte(`"app"`), []byte("\"\xff\\ud800\x00\""))
	default:
		piece[at] = byte(random.Uint32())
	}
	return piece
}

// S1: the forged record names the trusted pipeline and exactly the write that
// follows; the stamp in the object names who really made it.
func TestAForgedReviewThatNamesCIForAnAttackersWriteDoesNotAuthorizeIt(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	before := p.live("web")
	after := before.DeepCopy()
	after.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	after.Generation++
	forgery{user: ci, operation: admissionv1.Update, before: before, after: after}.send(t)
	p.recorded(ci, specguard.OperationUpdate, 1)
	p.witness()
	p.untilIs("web", "InSync")

	p.setImage(as(t, mallory), "web", "registry.example/evil:1")
	b := p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	if b.Spec.Authorized.Number != 1 {
		t.Errorf("revision %d is authorized", b.Spec.Authorized.Number)
	}
}

// S1: of two records of one /scale the one of the less trusted user counts.
func TestAForgedRecordBesideTheTrueOneExcusesNobodyWhoScales(t *testing.T) {
	p := newPlace(t)
	p.guard()
	for name, excuse := range map[string]string{"as-ci": ci, "as-autoscaler": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"} {
		t.Run(name, func(t *testing.T) {
			p := &place{t: t, namespace: p.namespace}
			p.deploy(name)
			scale := map[string]any{
				"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": 9},
				"metadata": map[string]any{"name": name, "namespace": p.namespace, "uid": p.live(name).UID, "resourceVersion": p.live(name).ResourceVersion},
			}
			forgery{user: excuse, operation: admissionv1.Update, subresource: "scale", before: p.live(name), after: scale}.send(t)
			p.must(as(t, mallory).SubResource("scale").Patch(t.Context(), p.named(name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`))))
			b := p.untilIs(name, "Drifted: Changed /spec/replicas by mallory (Untrusted, Admission)")
			if b.Spec.Authorized.Number != 1 {
				t.Errorf("revision %d is authorized", b.Spec.Authorized.Number)
			}
		})
	}
}

// S1: a record of a deletion, of an object that is there.
func TestAForgedDeletionByATrustedUserRetiresNothing(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	forgery{user: ci, operation: admissionv1.Delete, before: p.live("web")}.send(t)
	p.recorded(ci, specguard.OperationDelete, 1)
	p.witness()
	p.untilIs("web", "InSync")
	p.setImage(as(t, mallory), "web", "registry.example/evil:1")
	p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
}

// S1: the attacker deletes for real and has a forged record say it was CI.
func TestAForgedRecordBesideTheTrueOneExcusesNobodyWhoDeletes(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	forgery{user: ci, operation: admissionv1.Delete, before: p.live("web")}.send(t)
	p.recorded(ci, specguard.OperationDelete, 1)
	p.must(as(t, mallory).Delete(t.Context(), p.named("web")))
	p.untilIs("web", "Missing: Removed object by mallory (Untrusted, Admission)")
}

// S1 and S7: a finalizer parts the deletion that was reviewed from the version
// that disappears, and the forged record names the latter.
func TestAForgedRecordOfTheLastVersionExcusesNobodyWhoDeletesInTwoSteps(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stay"} })
	p.must(as(t, mallory).Delete(t.Context(), p.named("web")))
	p.recorded(mallory, specguard.OperationDelete, 1)
	forgery{user: ci, operation: admissionv1.Delete, before: p.live("web")}.send(t)
	p.recorded(ci, specguard.OperationDelete, 1)
	p.must(as(t, mallory).Patch(t.Context(), p.named("web"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	p.untilIs("web", "Missing: Removed object by mallory (Untrusted, Admission)")
}

// S1: where only the API server's client certificate vouches for a deletion, a
// record without it retires nothing.
func TestWithAuthenticatedDeletesAForgedRecordNamesNobody(t *testing.T) {
	p := newPlace(t)
	p.guard(func(g *v1alpha1.SpecGuard) { g.Spec.AuthenticatedDeletes = v1alpha1.AuthenticatedDeletesRequired })
	p.deploy("web")
	forgery{user: ci, operation: admissionv1.Delete, before: p.live("web")}.send(t)
	p.recorded(ci, specguard.OperationDelete, 1)
	p.must(as(t, mallory).Delete(t.Context(), p.named("web")))
	p.untilIs("web", "Missing: Removed object by ? (Unknown, None)")
}
