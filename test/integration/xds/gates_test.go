// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// gatesSigningKey signs the requests of webhooks.
const gatesSigningKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// outside is a Prometheus and the receiver of webhooks.
type outside struct {
	*httptest.Server
	mu sync.Mutex
	// samples of the vector that Prometheus answers with.
	samples []string
	// result that each event gets; an event without one gets an error.
	results map[string]string
	queries map[string]int
	told    map[string]int
	faults  []string
}

func startOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{results: map[string]string{}, queries: map[string]int{}, told: map[string]int{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// ServeHTTP answers queries and webhooks.
func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.URL.Path == "/api/v1/query" {
		o.queries[r.FormValue("query")]++
		list := ""
		for i, value := range o.samples {
			if i > 0 {
				list += ","
			}
			list += fmt.Sprintf(`{"metric":{},"value":[%d,%q]}`, time.Now().Unix(), value)
		}
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`+list+`]}}`) // the client notices a part that is missing
		return
	}
	event, err := o.verify(r)
	if err != nil {
		o.faults = append(o.faults, err.Error())
	}
	o.told[event]++
	result, is := o.results[event]
	if !is {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, `{"result":"`+result+`","message":"by the test"}`) // the client notices a part that is missing
}

// verify checks the signature of a request, and returns its event.
func (o *outside) verify(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", fmt.Errorf("reading a webhook: %w", err)
	}
	var in struct {
		Data struct{ ID, Event string } `json:"data"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return "", fmt.Errorf("reading a webhook: %w", err)
	}
	keys, err := notify.ParseSigningKeys(gatesSigningKey)
	if err != nil {
		return "", err
	}
	seconds, err := strconv.ParseInt(r.Header.Get(notify.HeaderWebhookTimestamp), 10, 64)
	if err != nil {
		return in.Data.Event, fmt.Errorf("reading the time of a webhook: %w", err)
	}
	if want := notify.Sign(keys, in.Data.ID, time.Unix(seconds, 0), body); r.Header.Get(notify.HeaderWebhookSignature) != want || r.Header.Get(notify.HeaderWebhookID) != in.Data.ID {
		return in.Data.Event, fmt.Errorf("the signature of %s is not the one of its body", in.Data.Event)
	}
	return in.Data.Event, nil
}

func (o *outside) change(edit func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	edit()
}

func TestGatesHoldAndFailARollout(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	o := startOutside(t)
	c, replica := deliveryWith(t, []string{"--set", "delivery.gateSecrets={gates}"}, []string{
		"--prometheus-url=" + o.URL, "--inline-queries", "--gate-secrets=gates", "--notify-allowed-networks=127.0.0.0/8", "--notify-plain-http",
	})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "gates"},
		StringData: map[string]string{"url": o.URL + "/gate", "key": gatesSigningKey},
	}
	if err := c.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s, r, _, _, clients := c.rolloutWorld(t, replica)
	webhook := func(name, event string) string {
		return `{"name":"` + name + `","event":"` + event + `","destination":{"name":"gates","key":"url"},"signingKey":{"name":"gates","key":"key"}}`
	}
	s.must(c.admin.Patch(t.Context(), r.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"rollout":{"start":"Automatic","gates":{"webhooks":[`+
		webhook("start", "BeforeStart")+`,`+webhook("rollback", "AfterRollback")+`]},"strategy":{"queries":[{"name":"errors","query":"errors{v=\"$(canary)\"}","maximum":"1","failureLimit":1}]}}}}`))))
	s.waits(r, "Gate") // the receiver answers with an error
	// The run keeps the queries that it began with, and it began without.
	ann := s.as("ann", "retry")
	s.must(s.ask(ann, r, `{"verb":"Rollback","run":1,"requestedBy":"ann"}`))
	s.wait(r, patience, "run 1 is rolled back", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Run.State == "RolledBack" })
	s.must(s.ask(ann, r, `{"verb":"Retry","run":1,"requestedBy":"ann"}`))
	s.wait(r, patience, "run 2 waits for the webhook", func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in.Run.Number == 2 && in.Waiting != nil && in.Waiting.Reason == "Gate" && len(in.Run.Queries) == 1
	})
	o.change(func() { o.results["BeforeStart"], o.results["AfterRollback"] = "Pass", "Pass" })
	s.wait(r, patience, "stage 1 is held by the query, which has no data", func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout
		return in.Stage == 1 && in.Waiting != nil && in.Waiting.Reason == "Gate" && in.Waiting.Message == "query errors has no data: the result has 0 samples, want one"
	})
	o.change(func() { o.samples = []string{"7"} })
	s.wait(r, patience, "run 2 is rolled back by the query", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Rollout.Run.Reason == "GateFailed" && r.Status.Split == "stable 100 / canary 0"
	})
	s.wait(r, patience, "the webhook is told", func(*v1alpha1.ABRelease) bool {
		told := 0
		o.change(func() { told = o.told["AfterRollback"] })
		return told > 0
	})
	o.change(func() {
		if len(o.faults) > 0 || o.queries[`errors{v="canary"}`] == 0 || len(o.queries) != 1 {
			t.Errorf("asked was %v, and the faults are %v", o.queries, o.faults)
		}
	})
	if clients.failed.Load() > 0 {
		t.Errorf("%d requests failed", clients.failed.Load())
	}
}
