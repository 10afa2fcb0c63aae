// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	chromium "github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// The role of the chart for ledgers is bound in the namespace of Plumbline alone.
func TestAPersonHaltsRemediationWithoutScriptAndLetsItGoOn(t *testing.T) {
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "by-form"}, Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"}}
	must(t, asExecutor.Create(t.Context(), l))
	defer func() { must(t, admin.Delete(t.Context(), l)) }()
	b := openConsole(t, "hal", "halters")
	path := "/ledgers/" + l.Namespace + "/" + l.Name
	awaitMay(t, b, path)
	s := chromium.Start(t)
	s.WithoutScript()
	s.Open(b.WithKey(t, path))
	halt := func(reason string) {
		s.Focus("#halt input[name=reason]")
		s.Type(reason)
		s.Press(chromium.Enter)
	}
	halt("")
	s.Await(`id="halt-reason-error"`)
	halt("INC-9")
	s.Await("You asked to halt remediation.", "halted by hal: INC-9")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(l), l))
	if diff := cmp.Diff(&v1alpha1.LedgerHalt{RequestedBy: "hal", Reason: "INC-9"}, l.Spec.Halt); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	s.Focus("#unhalt button")
	s.Press(chromium.Enter)
	s.Await("You asked to let remediation go on.", "not halted")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(l), l))
	if l.Spec.Halt != nil {
		t.Errorf("stored %+v", l.Spec.Halt)
	}
}

// postForm sends a form, and demands that the console leads to the page.
func (b *browser) postForm(t *testing.T, path string, values url.Values) {
	t.Helper()
	response, err := b.PostForm(b.Base+path, values)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Request.URL.RawQuery, "sent=") {
		t.Errorf("%s: %s at %s", path, response.Status, response.Request.URL)
	}
}

// Skipping and retrying take verbs of their own beside the right to write the release; a pause does not.
func TestAPersonSkipsRetriesAndPausesARun(t *testing.T) {
	underWay(t, "by-forms")
	key := client.ObjectKey{Namespace: tenant, Name: "by-forms"}
	r := &v1alpha1.ABRelease{}
	must(t, admin.Get(t.Context(), key, r))
	r.Status.Rollout.Stage, r.Status.Rollout.Run.State, r.Status.Rollout.Run.Stages[0].State = 1, "Running", "Running"
	must(t, admin.Status().Update(t.Context(), r))
	const path = "/releases/" + tenant + "/by-forms"
	b, writer := openConsole(t, "root", superuser), openConsole(t, "eve", editor)
	poll.True(t, patience, "a writer may pause", func() bool {
		_, body := writer.send(t, path)
		return !strings.Contains(string(body), "You may not patch abreleases")
	})
	if _, body := writer.send(t, path); !strings.Contains(string(body), "You may not skip abreleases in namespace shop: the ClusterRole plumbline-release-approver has this right.") {
		t.Errorf("a writer may skip: %s", body)
	}
	s := chromium.Start(t)
	s.Open(b.WithKey(t, path))
	s.Await("You skip stage 1 (10 % of the requests) of run 1.")
	s.TabTo("#skip input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	s.Await("You asked to skip the stage.")
	complainsAboutNothing(t, s)
	control := func() *v1alpha1.RolloutControl {
		must(t, admin.Get(t.Context(), key, r))
		return r.Spec.Rollout.Control
	}
	if diff := cmp.Diff(&v1alpha1.RolloutControl{Verb: "Skip", Run: 1, Stage: 1, RequestedBy: "root", Reason: "INC-9"}, control()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	b.postForm(t, path+"/retry", url.Values{"reason": {"INC-10"}})
	if diff := cmp.Diff(&v1alpha1.RolloutControl{Verb: "Retry", Run: 1, RequestedBy: "root", Reason: "INC-10"}, control()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		verb string
		want v1alpha1.Toggle
	}{{"pause", v1alpha1.Enabled}, {"resume", v1alpha1.Disabled}} {
		writer.postForm(t, path+"/"+step.verb, nil)
		if control(); r.Spec.Rollout.Pause != step.want {
			t.Errorf("after %s it is %q", step.verb, r.Spec.Rollout.Pause)
		}
	}
}

func TestAPersonEndsAQuarantine(t *testing.T) {
	d := drifted(t, "in-quarantine")
	d.Status.PlanName = "p" // a plan that has claimed the object begins its quarantine
	d.Status.Quarantine = &v1alpha1.Quarantine{Token: "plan-0", By: "RemediationPlan/p", StartTime: metav1.Now().Rfc3339Copy()}
	must(t, asExecutor.Status().Update(t.Context(), d))
	must(t, bindInTenant(t.Context(), "lifters", "plumbline-view", "plumbline-admin"))
	b := openConsole(t, "lin", "lifters")
	path := "/objects/" + tenant + "/" + d.Name
	poll.True(t, patience, "the owner may lift", func() bool {
		code, body := b.send(t, path)
		return code == http.StatusOK && !strings.Contains(string(body), "You may not patch baselines")
	})
	b.postForm(t, path+"/lift", url.Values{"token": {"plan-0"}, "reason": {"INC-9"}})
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	want := &v1alpha1.LiftRequest{Token: "plan-0", RequestedBy: "lin", RequestedByGroups: []string{"lifters"}, Reason: "INC-9"}
	if diff := cmp.Diff(want, d.Spec.Lift); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if _, body := b.send(t, path); !strings.Contains(string(body), "Asked: to end the quarantine, by lin: INC-9") {
		t.Errorf("the page does not show the request: %s", body)
	}
}
