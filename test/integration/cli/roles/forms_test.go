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
)

// typed is a reason with markup, which the pages show as text.
const typed = `INC-9 "<b>agreed</b>" & <script>alert(1)</script>`

// awaitMay waits until a user of a group may send the requests of a console: roles take a moment to be known.
func awaitMay(t *testing.T, b *browser, path string) {
	t.Helper()
	poll.True(t, patience, path+" has a button that can be pressed", func() bool {
		code, body := b.send(t, path)
		return code == http.StatusOK && !strings.Contains(string(body), "You may not")
	})
}

func complainsAboutNothing(t *testing.T, s *chromium.Session) {
	t.Helper()
	if complaints := s.Complaints(); len(complaints) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(complaints, "\n"))
	}
}

func TestAPersonCancelsAPlanByTheKeyboardAlone(t *testing.T) {
	p := plan(t, "by-keyboard")
	b := openConsole(t, "oz", "operators")
	path := "/plans/" + tenant + "/" + p.Name
	awaitMay(t, b, path)
	s := chromium.Start(t)
	s.Open(b.WithKey(t, path))
	s.TabTo("#cancel input[name=reason]")
	s.Type(typed)
	s.Press(chromium.Enter)
	s.Await("You asked to cancel the plan.")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if diff := cmp.Diff(v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "oz", Reason: typed}, p.Spec.Control); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if html := s.HTML(); strings.Contains(html, "<b>agreed") || !strings.Contains(html, "&lt;b&gt;agreed") {
		t.Errorf("the reason is not shown as text: %s", html)
	}
	complainsAboutNothing(t, s)
}

func TestAPersonWithoutScriptAcceptsADrift(t *testing.T) {
	d := drifted(t, "without-script")
	must(t, bindInTenant(t.Context(), "form-owners", "plumbline-view", "plumbline-admin"))
	b := openConsole(t, "ona", "form-owners")
	path := "/objects/" + tenant + "/" + d.Name
	awaitAccept := func() bool {
		_, body := b.send(t, path)
		return !strings.Contains(string(body), "You may not patch baselines")
	}
	poll.True(t, patience, "the owner may accept", awaitAccept)
	s := chromium.Start(t)
	s.WithoutScript()
	s.Open(b.WithKey(t, path))
	s.Focus("#accept input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	html := s.Await("You asked to accept the observed state.", "Asked: to accept pl1:dddddddddddd, by ona: INC-9")
	if strings.Contains(html, "The page is read anew") {
		t.Error("a script ran")
	}
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	want := &v1alpha1.AcceptRequest{Hash: d.Status.Observed.Hash, RequestedBy: "ona", RequestedByGroups: []string{"form-owners"}, Reason: "INC-9"}
	if diff := cmp.Diff(want, d.Spec.Accept); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	complainsAboutNothing(t, s)
}

func TestAPersonActivatesAPolicyAfterALookAtItsEffect(t *testing.T) {
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "by-form"},
		Spec:       v1alpha1.RemediationPolicySpec{EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile},
	}
	must(t, admin.Create(t.Context(), p))
	b := openConsole(t, "ann", "authors")
	awaitMay(t, b, "/policies/by-form")
	s := chromium.Start(t)
	s.Open(b.WithKey(t, "/policies/by-form"))
	s.TabTo("#activate button")
	s.Press(chromium.Enter)
	s.Await("Activate policy by-form", "ann, groups ", "Reconcile (Rolling) on severity", "Drifts and gates")
	s.TabTo("#activate input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	s.Await("You asked to activate the policy.")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Spec; got.Mode != v1alpha1.PolicyModeActive || got.RequestedBy != "ann" || !strings.Contains(strings.Join(got.RequestedByGroups, " "), "authors") {
		t.Errorf("stored %s by %s, %q", got.Mode, got.RequestedBy, got.RequestedByGroups)
	}
	complainsAboutNothing(t, s)
}

// A viewer sees which right a button wants, and a form that is sent all the same is refused by the API server.
func TestAViewerSeesWhichRightAButtonWants(t *testing.T) {
	p := plan(t, "viewed")
	b := openConsole(t, "vic", "viewers")
	path := "/plans/" + tenant + "/" + p.Name
	poll.True(t, patience, "the viewer may read plans", func() bool {
		code, _ := b.send(t, path)
		return code == http.StatusOK
	})
	s := chromium.Start(t)
	s.Open(b.WithKey(t, path))
	const wants = "You may not patch remediationplans in namespace shop: the ClusterRole plumbline-plan-operator has this right."
	s.Await(wants)
	if got := s.Eval(`document.querySelector("#cancel button").disabled`); got != "true" {
		t.Errorf("disabled is %s", got)
	}
	s.Focus("#cancel input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	complainsAboutNothing(t, s)
	response, err := b.PostForm(b.Base+path+"/cancel", url.Values{"reason": {"INC-9"}})
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a form that is sent all the same: %s", response.Status)
	}
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if p.Spec.Control != (v1alpha1.PlanControl{}) {
		t.Errorf("stored %+v", p.Spec.Control)
	}
}

// An update changes the new values, and leaves the reason that a person is typing, and the focus, alone.
func TestAnUpdateLeavesAHalfTypedReasonAlone(t *testing.T) {
	p := plan(t, "half-typed")
	b := openConsole(t, "oz", "operators")
	path := "/plans/" + tenant + "/" + p.Name
	awaitMay(t, b, path)
	s := chromium.Start(t)
	s.Open(b.WithKey(t, path))
	s.Focus("#cancel input[name=reason]")
	s.Type("half a rea")
	p.Status.Phase, p.Status.CompletionTime = v1alpha1.PlanSucceeded, new(metav1.Now().Rfc3339Copy())
	must(t, asExecutor.Status().Update(t.Context(), p))
	s.Await("Not now: the plan has ended as Succeeded.")
	s.Type("son")
	for expression, want := range map[string]string{
		`document.querySelector("#cancel input[name=reason]").value`:                      "half a reason",
		`document.activeElement === document.querySelector("#cancel input[name=reason]")`: "true",
		`document.querySelector("#cancel button").disabled`:                               "true",
	} {
		if got := s.Eval(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	complainsAboutNothing(t, s)
}

// The typed text is still there when the request is refused, and a screen reader is led to the reason.
func TestTheFocusIsAtTheReasonOfARefusal(t *testing.T) {
	p := plan(t, "refused-form")
	b := openConsole(t, "oz", "operators")
	path := "/plans/" + tenant + "/" + p.Name
	awaitMay(t, b, path)
	s := chromium.Start(t)
	s.WithoutScript()
	s.Open(b.WithKey(t, path))
	p.Status.Phase, p.Status.CompletionTime = v1alpha1.PlanSucceeded, new(metav1.Now().Rfc3339Copy())
	must(t, asExecutor.Status().Update(t.Context(), p))
	s.Focus("#pause input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	html := s.Await("the plan has ended as Succeeded", `value="INC-9"`)
	if !strings.Contains(html, `role="alert" tabindex="-1" autofocus`) {
		t.Errorf("no alert has the focus in %s", html)
	}
}

// A value that the API server refuses is told beside its input. The changes are shown before the policy is saved, and
// a policy that another user has changed meanwhile is not overwritten.
func TestAPersonEditsAPolicyAfterALookAtItsChanges(t *testing.T) {
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "edited"},
		Spec:       v1alpha1.RemediationPolicySpec{EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile},
	}
	must(t, admin.Create(t.Context(), p))
	b := openConsole(t, "ann", "authors")
	awaitMay(t, b, "/policies/edited")
	s := chromium.Start(t)
	s.WithoutScript()
	s.Open(b.WithKey(t, "/policies/edited/edit"))
	enter := func(field, value string) {
		s.Focus("#edit input[name=" + field + "]")
		s.Type(value)
		s.Press(chromium.Enter)
	}
	// The trigger stays the one that needs no age, so the API server refuses the greatest age below the least.
	s.Focus("#edit input[name=minimumDriftAge]")
	s.Type("00:10:00")
	enter("maximumDriftAge", "00:05:00")
	s.Await(`id="edit-maximumDriftAge-error"`, `name="minimumDriftAge" value="00:10:00"`)
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	p.Spec.MinimumSeverity = v1alpha1.SeverityCritical
	must(t, admin.Update(t.Context(), p))
	s.Open(b.WithKey(t, "/policies/edited/edit"))
	enter("maximumDriftAge", "05:00:00")
	s.Await("The API server takes these values.", "05:00:00")
	p.Spec.MinimumSeverity = v1alpha1.SeverityLow
	must(t, admin.Update(t.Context(), p))
	s.Focus("#edit button")
	s.Press(chromium.Enter)
	s.Await("another user has changed the object since you opened the page.")
	s.Focus("#edit button")
	s.Press(chromium.Enter)
	s.Await("The API server takes these values.")
	s.Focus("#edit button")
	s.Press(chromium.Enter)
	s.Await("You asked to save the policy.")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Spec; got.MaximumDriftAge == nil || got.MaximumDriftAge.Hours() != 5 || got.MinimumSeverity != v1alpha1.SeverityLow || got.RequestedBy != "ann" {
		t.Errorf("stored %+v", got)
	}
}

// An approval asks again: the page has the run and the stage, and the request names them.
func TestAPersonApprovesAStageAfterALookAtIt(t *testing.T) {
	underWay(t, "by-approval")
	key := client.ObjectKey{Namespace: tenant, Name: "by-approval"}
	r := &v1alpha1.ABRelease{}
	must(t, admin.Get(t.Context(), key, r))
	r.Status.Rollout.Stage, r.Status.Rollout.Run.State = 1, "Running"
	r.Status.Rollout.Run.Stages[0].State, r.Status.Rollout.Run.Stages[0].RequireApproval = "Running", v1alpha1.Enabled
	must(t, admin.Status().Update(t.Context(), r))
	b := openConsole(t, "root", superuser)
	s := chromium.Start(t)
	s.Open(b.WithKey(t, "/releases/"+tenant+"/by-approval"))
	s.TabTo("#approve button")
	s.Press(chromium.Enter)
	s.Await("Approve stage 1 of release shop/by-approval", "You approve stage 1 (10 % of the requests) of run 1, which brings variation next.")
	s.TabTo("#approve input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	s.Await("You asked to approve the stage.")
	must(t, admin.Get(t.Context(), key, r))
	want := &v1alpha1.RolloutControl{Verb: "Approve", Run: 1, Stage: 1, RequestedBy: "root", Reason: "INC-9"}
	if diff := cmp.Diff(want, r.Spec.Rollout.Control); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	complainsAboutNothing(t, s)
}

// The object changes while a person types: the page shows the new state, and the request is still about the state of
// before, which is refused.
func TestAnAcceptanceIsAboutTheStateThatThePersonHasSeen(t *testing.T) {
	d := drifted(t, "changing")
	b := openConsole(t, "root", superuser)
	s := chromium.Start(t)
	s.Open(b.WithKey(t, "/objects/"+tenant+"/"+d.Name))
	s.Focus("#accept input[name=reason]")
	s.Type("INC-9")
	d.Status.Observed.Hash = "pl1:sha256:" + strings.Repeat("e", 64)
	must(t, asAssessor.Status().Update(t.Context(), d))
	s.Await("The observed state pl1:eeeeeeeeeeee becomes the authorized state.")
	s.Press(chromium.Enter)
	s.Await("it changed since it was shown: now "+d.Status.Observed.Hash, `value="INC-9"`)
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Spec.Accept != nil {
		t.Errorf("stored %+v", d.Spec.Accept)
	}
}
