// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// apiServerLimit is how the API server words its bound on request bodies.
const apiServerLimit = "limit is 3145728"

// post sends a body as it is to the namespace's Deployments.
func (p *place) post(body []byte, parameters map[string]string) (made appsv1.Deployment, code int, warnings []string, err error) {
	p.t.Helper()
	request := as(p.t, alice).AppsV1().RESTClient().Post().Namespace(p.namespace).Resource("deployments").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body)
	for name, value := range parameters {
		request = request.Param(name, value)
	}
	result := request.Do(p.t.Context())
	result.StatusCode(&code)
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	return made, code, warnings, result.Into(&made)
}

// mustLeaveTheWebhookWell calls do and checks that nothing was left unassessed,
// that the same process is ready, and that a write elsewhere is stamped as ever.
func mustLeaveTheWebhookWell(t *testing.T, do func()) {
	t.Helper()
	before, opened, started := w.hook.metric("plumbline_admission_unassessed_total"), failOpen(t), w.hook.metric("process_start_time_seconds")
	do()
	if code, body, err := w.hook.get(w.hook.Health, "/readyz"); code != http.StatusOK {
		t.Errorf("readiness %d %s %v", code, body, err)
	}
	if got := w.hook.metric("process_start_time_seconds"); got != started || started <= 0 {
		t.Errorf("the process began at %v, before at %v", got, started)
	}
	other := newPlace(t, unchanged)
	other.deploy(ci)
	other.mustBeStamped(ci)
	if n := w.hook.metric("plumbline_admission_unassessed_total") - before; n != 0 {
		t.Errorf("%v reviews were not assessed", n)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
}

func TestAnObjectOverTheAPIServersLimitIsRefused(t *testing.T) {
	p := newPlace(t, unchanged)
	d := webDeployment()
	d.Spec.Template.Spec.Containers[0].Env[0].Value = strings.Repeat("x", 6<<20)
	body, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	mustLeaveTheWebhookWell(t, func() {
		before := reviews()
		_, code, _, err := p.post(body, nil)
		if code != http.StatusRequestEntityTooLarge || err == nil || !strings.Contains(err.Error(), apiServerLimit) {
			t.Errorf("status %d, error %v", code, err)
		}
		if n := reviews() - before; n != 0 {
			t.Errorf("%v reviews of an object that was refused", n)
		}
	})
}

// withDuplicateKeys is a Deployment that says its replicas twice.
func withDuplicateKeys(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(webDeployment())
	if err != nil {
		t.Fatal(err)
	}
	twice := bytes.Replace(body, []byte(`"replicas":1`), []byte(`"replicas":1,"replicas":4`), 1)
	if bytes.Equal(twice, body) {
		t.Fatal("the body has no replicas to repeat")
	}
	return twice
}

func TestDuplicateKeys(t *testing.T) {
	const complaint = `duplicate field "spec.replicas"`
	body := withDuplicateKeys(t)
	t.Run("are warned about, and what is stored is stamped", func(t *testing.T) {
		p := newPlace(t, unchanged)
		mustLeaveTheWebhookWell(t, func() {
			made, code, warnings, err := p.post(body, nil)
			if err != nil || code != http.StatusCreated {
				t.Fatalf("status %d, error %v", code, err)
			}
			if !strings.Contains(strings.Join(warnings, "\n"), complaint) {
				t.Errorf("warnings %q", warnings)
			}
			if *made.Spec.Replicas != 4 {
				t.Errorf("%d replicas; the API server takes the last of two", *made.Spec.Replicas)
			}
			p.mustBeStamped(alice)
		})
	})
	t.Run("are refused with fieldValidation=Strict", func(t *testing.T) {
		p := newPlace(t, unchanged)
		mustLeaveTheWebhookWell(t, func() {
			before := reviews()
			_, code, _, err := p.post(body, map[string]string{"fieldValidation": "Strict"})
			if code != http.StatusBadRequest || err == nil || !strings.Contains(err.Error(), complaint) {
				t.Errorf("status %d, error %v", code, err)
			}
			if n := reviews() - before; n != 0 {
				t.Errorf("%v reviews of an object that was refused", n)
			}
		})
	})
}

func TestAGuardOfTenMegabytesIsRefused(t *testing.T) {
	p := newPlace(t, nil)
	guard := &v1alpha1.SpecGuard{Spec: v1alpha1.GuardSpec{
		Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		Selector:  selector("app", strings.Repeat("x", 10<<20)),
	}}
	guard.APIVersion, guard.Kind, guard.Name = v1alpha1.GroupVersion.String(), "SpecGuard", "huge"
	body, err := json.Marshal(guard)
	if err != nil {
		t.Fatal(err)
	}
	mustLeaveTheWebhookWell(t, func() {
		before := w.hook.metric("plumbline_guards")
		_, stderr, err := p.kubectl(alice, string(body), "create", "-f", "-")
		if err == nil || !strings.Contains(stderr, "Request entity too large: "+apiServerLimit) {
			t.Errorf("error %v, stderr %.300q", err, stderr)
		}
		if n := w.hook.metric("plumbline_guards") - before; n != 0 {
			t.Errorf("the webhook knows %v guards more", n)
		}
	})
}
