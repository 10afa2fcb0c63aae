// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// timeout is that of each of our two webhooks in the chart, and longest is for how many
// seconds an API server can wait for a webhook at all.
const (
	timeout = 2 * time.Second
	longest = 30
)

func TestAKilledWebhookDelaysNoWriteAndItsChangesAreFoundNamedAndSweptAfterwards(t *testing.T) {
	w := shared.newWorld(t)
	// The API server would wait for half a minute in each call, and the writes below have
	// no time for that.
	h := w.serve(nil, longest, nil)
	a := w.assessor("", "--api-server-metrics=10s")
	w.UnderGuard()
	for _, name := range []string{"web", "cart"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	if got, want := w.stampOf("web"), w.hashOf("web"); got != want {
		t.Fatalf("stamp %q, the stored object's hash is %q", got, want)
	}

	opened := w.failOpen()
	w.Must(h.Kill())
	write := func(user, name, image string) {
		ctx, cancel := context.WithTimeout(w.Ctx(), longest*time.Second)
		defer cancel()
		if err := w.As(user).Patch(ctx, w.Named(name), guarded.ImagePatch(image)); err != nil {
			t.Fatalf("writing %s while the webhook is dead: %v", name, err)
		}
	}
	write(alice, "web", evilImage)
	const more = 5
	for n := range more {
		write(ci, "cart", fmt.Sprintf("registry.example/cart:%d", n))
	}
	w.UntilIs("web", evil)
	w.untilAuthorized("cart", 6)
	if n := w.failOpen() - opened; n < 1+more {
		t.Errorf("the API server counted %v calls without an answer for %d writes", n, 1+more)
	}
	if w.stampOf("web") == w.hashOf("web") {
		t.Error("an object is stamped although nobody was there to do it")
	}

	h.start()
	h.awaitServing()
	w.SetImage(ci, "cart", guarded.Image)
	if got, want := w.stampOf("cart"), w.hashOf("cart"); got != want {
		t.Errorf("stamp %q after the return, the stored object's hash is %q", got, want)
	}
	// From the API server's own count: the assessor knows of the window, and has
	// looked once more at what was written in it.
	w.comes(a, moreThan(0), "plumbline_fail_open_calls_total")
	w.comes(a, moreThan(0), "plumbline_sweeps_total", `result="complete"`)
	w.comes(a, moreThan(1), "plumbline_sweep_objects_total")
	w.comes(a, exactly(0), "plumbline_sweep_behind_total")
	w.UntilIs("web", evil)
}

func TestWritesPassAHangingWebhookAfterItsTimeoutAndItGoesOnAfterwards(t *testing.T) {
	w := shared.newWorld(t)
	h := w.hurriedWebhook()
	w.assessor("")
	w.UnderGuard()
	const writers = 4
	name := func(n int) string { return fmt.Sprintf("web-%d", n) }
	for n := range writers {
		w.Deploy(ci, name(n))
		w.untilAuthorized(name(n), 1)
	}
	opened, calls, spent := w.failOpen(), w.called(), w.spent()
	w.Must(h.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = h.Signal(syscall.SIGCONT) }) // or it could not be stopped
	took := make([]time.Duration, writers)
	var wg sync.WaitGroup
	client := w.As(alice) // made before it is shared
	for n := range writers {
		wg.Go(func() {
			took[n] = timed(func() {
				if err := client.Patch(w.Ctx(), w.Named(name(n)), guarded.ImagePatch(evilImage)); err != nil {
					t.Error(err)
				}
			})
		})
	}
	wg.Wait()
	for _, d := range took {
		if d < timeout {
			t.Errorf("a write took %v; a call that hangs takes %v", d, timeout)
		}
	}
	n := w.called() - calls
	if n != writers { // each takes its timeout at most, so their number bounds the delay
		t.Errorf("the API server made %v calls for %d writes, want one for each", n, writers)
	}
	t.Logf("each of %v calls took %v s on average, by the API server's own measure", n, (w.spent()-spent)/n)
	if n := w.failOpen() - opened; n < writers {
		t.Errorf("the API server counted %v calls without an answer", n)
	}
	for n := range writers {
		w.UntilIs(name(n), evil)
	}

	w.unhurry()
	w.Must(h.Signal(syscall.SIGCONT))
	h.awaitServing()
	opened = w.failOpen()
	w.SetImage(ci, name(0), "registry.example/shop:2")
	if got, want := w.stampOf(name(0)), w.hashOf(name(0)); got != want {
		t.Errorf("stamp %q after the pause, the stored object's hash is %q", got, want)
	}
	if n := w.failOpen() - opened; n != 0 {
		t.Errorf("%v calls were without an answer after the pause", n)
	}
}

// called is how many calls of our webhooks the API server made, and spent how
// many seconds they took it.
func (w *world) called() float64 {
	return w.apiMetric("apiserver_admission_webhook_admission_duration_seconds_count", ".plumbline.dev")
}

func (w *world) spent() float64 {
	return w.apiMetric("apiserver_admission_webhook_admission_duration_seconds_sum", ".plumbline.dev")
}

// endless is a mutating webhook that changes what it is given at every call.
type endless struct {
	server *httptest.Server
	calls  atomic.Int64
}

func startEndless(t *testing.T) *endless {
	e := &endless{}
	e.server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/minReadySeconds","value":%d}]`, e.calls.Add(1))
		fmt.Fprintf(rw, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`,
			review.Request.UID, base64.StdEncoding.EncodeToString(patch))
	}))
	t.Cleanup(e.server.Close)
	return e
}

func (w *world) registerAfterOurs(e *endless) {
	w.t.Helper()
	config := &arv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-later"},
		Webhooks: []arv1.MutatingWebhook{{
			Name: "later.example.com", AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(arv1.Fail), SideEffects: new(arv1.SideEffectClassNone), ReinvocationPolicy: new(arv1.IfNeededReinvocationPolicy),
			ClientConfig: arv1.WebhookClientConfig{
				URL: &e.server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Name}},
			Rules: []arv1.RuleWithOperations{{
				Operations: []arv1.OperationType{arv1.Create, arv1.Update},
				Rule:       arv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}
	w.Must(w.c.Admin.Create(w.Ctx(), config))
	w.t.Cleanup(func() {
		if err := w.c.Admin.Delete(w.background(), config); err != nil {
			w.t.Error(err)
		}
	})
}

// That a well-behaved second mutator leaves the stamp that of the final object is
// shown by TestReinvocation in test/integration/admission.
func TestASecondMutatorThatNeverSettlesEndsAndOnlyMakesTheStampOld(t *testing.T) {
	w := shared.newWorld(t)
	h := w.webhook()
	w.assessor("")
	w.UnderGuard()
	e := startEndless(t)
	w.registerAfterOurs(e)
	w.Eventually("the other webhook is called", func() error {
		d := guarded.Deployment(w.Name, "other")
		err := w.As(ci).Create(w.Ctx(), d, dryRun)
		if err == nil && d.Spec.MinReadySeconds == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	calls, reviews := e.calls.Load(), w.metric(h.Process, "plumbline_admission_reviews_total", `handler="mutate"`)
	w.Deploy(ci, "web")
	if n := w.metric(h.Process, "plumbline_admission_reviews_total", `handler="mutate"`) - reviews; n != 2 {
		t.Errorf("ours was called %v times for one write, want 2", n)
	}
	if n := e.calls.Load() - calls; n != 2 {
		t.Errorf("the other was called %d times, want 2", n)
	}
	if w.stampOf("web") == w.hashOf("web") {
		t.Error("the stamp fits; then this test shows nothing")
	}
	// What was stored counts, and not the stamp.
	w.Until("web", "what was stored is what is authorized", func(b *v1alpha1.Baseline) error {
		if got, want := b.Status.Observed.FullHash, w.hashOf("web"); got != want || guarded.Describe(b) != inSync {
			return fmt.Errorf("observed %s, stored %s", got, want)
		}
		return nil
	})
	w.SetImage(alice, "web", evilImage)
	w.Until("web", "alice's change is found, and what her write brought along", func(b *v1alpha1.Baseline) error {
		text := guarded.Describe(b)
		for _, path := range []string{guarded.ImagePath, "/spec/minReadySeconds"} {
			if !strings.Contains(text, path+" by alice (Untrusted, WriterStamp)") {
				return fmt.Errorf("%s is not", path)
			}
		}
		return nil
	})
}

// occupy takes the only place of the caller 127.0.0.1, which is the API server's
// too, with bodies that do not end; each is given up after five seconds.
func occupy(port int, stop <-chan struct{}) {
	for {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true}) // it does not care who answers
		if err != nil {
			return
		}
		_, err = conn.Write([]byte("POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = conn.Read(make([]byte, 1)) // until somebody ends it
		}()
		if err == nil {
			select {
			case <-ended:
			case <-stop:
			}
		}
		_ = conn.Close() // thrown away
		<-ended
		select {
		case <-stop:
			return
		default:
		}
	}
}

// That every shed review is answered and marked is shown by
// TestBeyondItsCapacityTheWebhookShedsAndSaysSo in test/integration/admission.
func TestAWriteWhoseReviewIsShedPassesAndIsFoundWithItsWriter(t *testing.T) {
	w := shared.newWorld(t)
	h := w.webhook("--max-concurrent=1")
	w.assessor("")
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.untilAuthorized("web", 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { occupy(h.port, stop) })
	defer wg.Wait()
	defer close(stop)
	opened, n := w.failOpen(), 0
	w.Eventually("a write meets a webhook without a place", func() error {
		before := w.metric(h.Process, "plumbline_admission_unassessed_total", `reason="shed"`)
		n++
		w.SetImage(alice, "web", fmt.Sprintf("%s%d", evilImage, n))
		if shed := w.metric(h.Process, "plumbline_admission_unassessed_total", `reason="shed"`) - before; shed < 1 {
			return fmt.Errorf("%v of its reviews were shed", shed)
		}
		return nil
	})
	w.UntilIs("web", evil)
	if w.stampOf("web") == w.hashOf("web") {
		t.Error("the object is stamped although its review was shed")
	}
	if n := w.failOpen() - opened; n != 0 {
		t.Errorf("%v calls had no answer: shedding is one", n)
	}
}
