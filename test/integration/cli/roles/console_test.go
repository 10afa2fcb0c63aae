// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/console"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// browser has the cookie of a console that runs as a user.
type browser struct{ *console.Console }

// openConsole runs the console as a user of a group until the test ends, and opens its address.
func openConsole(t *testing.T, user, group string) *browser {
	t.Helper()
	return &browser{console.Open(t, "--kubeconfig", kubeconfig, "--as", user, "--as-group", group, "--as-group", "system:authenticated")}
}

func (b *browser) send(t *testing.T, path string) (code int, body []byte) {
	t.Helper()
	code, _, body = b.Send(t, path)
	return code, body
}

// The API server decides how much a console shows: to a user with the right to view all, to one with
// rights in one namespace, and to one without any.
func TestAConsoleShowsWhatItsUserMayRead(t *testing.T) {
	p := plan(t, "shown")
	must(t, admin.Create(t.Context(), &v1alpha1.RolloutStrategy{ObjectMeta: metav1.ObjectMeta{Name: "shown"}, Spec: v1alpha1.RolloutStrategySpec{
		Stages: []v1alpha1.RolloutStage{{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}}},
	}}))
	// The chart aggregates its role to view, and so to edit. No controller aggregates here, so the
	// role of the chart stands for both.
	editors := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "editors"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "editors"}},
	}
	must(t, admin.Create(t.Context(), editors))
	must(t, apiserver.AwaitBound(t.Context(), admin, editors.Subjects[0], tenant, editors.RoleRef))

	viewer, editor, stranger := openConsole(t, "vic", "viewers"), openConsole(t, "eve", "editors"), openConsole(t, "ned", "strangers")
	t.Run("a viewer reads all", func(t *testing.T) {
		poll.True(t, patience, "the viewer may list plans", func() bool {
			code, _ := viewer.send(t, "/api/v1/remediation/plans")
			return code == http.StatusOK
		})
		var one wire.Plan
		viewer.Want(t, "/api/v1/remediation/plans/"+string(p.UID), http.StatusOK, &one)
		if one.Name != "shown" || one.Namespace != tenant {
			t.Errorf("the plan is %s/%s", one.Namespace, one.Name)
		}
		for _, path := range []string{
			"remediation/policies", "remediation/history?source=plan", "ab-releases", "rollout-strategies", "baselines", "environments", "guards", "assessments",
		} {
			viewer.Want(t, "/api/v1/"+path, http.StatusOK, &[]any{})
		}
	})
	t.Run("a viewer reaches no process", func(t *testing.T) {
		// The role of the chart for viewers reads no ConfigMap and no pod of Plumbline.
		for path, right := range map[string]wire.MissingRight{
			"remediation/history":                               {Verb: "get", Kind: "ConfigMap", Namespace: rendered.Namespace},
			"remediation/history/" + tenant + ".shown/evidence": {Verb: "get", Kind: "ConfigMap", Namespace: rendered.Namespace},
			"proxies": {Verb: "list", Kind: "Pod", Namespace: rendered.Namespace},
		} {
			wantForbidden(t, viewer, path, right)
		}
		viewer.Shows(t, "/evidence", http.StatusForbidden, "you may not get ConfigMap in namespace "+rendered.Namespace)
		viewer.Shows(t, "/evidence/plans/"+tenant+"/shown", http.StatusForbidden, "you may not get ConfigMap in namespace "+rendered.Namespace)
		viewer.Shows(t, "/proxies", http.StatusOK, "No proxy is shown: you may not list Pod in namespace "+rendered.Namespace, "The proxies are not known.")
	})
	t.Run("a viewer opens each page", func(t *testing.T) {
		for path, words := range map[string]string{
			"/": "guarded:", "/drift": "Findings, worst first", "/plans": tenant + "/shown", "/plans/" + tenant + "/shown": "Steps of batch", "/policies": "Policies by Environment",
			"/releases": "Releases", "/assessments": "Assessments, those under way first", "/whoami": "vic", "/whoami?namespace=" + tenant: "in namespace " + tenant,
		} {
			viewer.Shows(t, path, http.StatusOK, words)
		}
		if code, body := viewer.send(t, "/whoami"); strings.Contains(string(body), "not known") {
			t.Errorf("a right is not known: %d %s", code, body)
		}
	})
	t.Run("an editor opens the pages of one namespace", func(t *testing.T) {
		editor.Shows(t, "/plans?namespace="+tenant, http.StatusOK, tenant+"/shown")
		editor.Shows(t, "/?namespace="+tenant, http.StatusOK, "Not known: you may not list")
		editor.Shows(t, "/drift", http.StatusForbidden, "you may not list Baseline in the whole cluster")
		editor.Shows(t, "/policies", http.StatusForbidden, "you may not list RemediationPolicy in the whole cluster")
	})
	t.Run("an editor reads one namespace", func(t *testing.T) {
		var plans []wire.Plan
		editor.Want(t, "/api/v1/remediation/plans?namespace="+tenant, http.StatusOK, &plans)
		if len(plans) == 0 {
			t.Error("the editor sees no plan")
		}
		editor.Want(t, "/api/v1/remediation/plans/"+tenant+".shown", http.StatusOK, &wire.Plan{})
		for path, right := range map[string]wire.MissingRight{
			"remediation/plans":                   {Verb: "list", Kind: "RemediationPlan"},
			"remediation/plans?namespace=default": {Verb: "list", Kind: "RemediationPlan", Namespace: "default"},
			"remediation/plans/default.shown":     {Verb: "get", Kind: "RemediationPlan", Namespace: "default"},
			"remediation/plans/" + string(p.UID):  {Verb: "list", Kind: "RemediationPlan"},
			"rollout-strategies/shown":            {Verb: "get", Kind: "RolloutStrategy"},
			"guards":                              {Verb: "list", Kind: "SpecGuard"},
		} {
			wantForbidden(t, editor, path, right)
		}
	})
	t.Run("a user without any right reads their name alone", func(t *testing.T) {
		var me wire.Whoami
		stranger.Want(t, "/api/v1/whoami", http.StatusOK, &me)
		if me.User != "ned" {
			t.Errorf("the user is %q", me.User)
		}
		stranger.Shows(t, "/whoami", http.StatusOK, "plumbline-view")
		for _, path := range []string{"/", "/drift?namespace=" + tenant, "/plans?namespace=" + tenant, "/plans/" + tenant + "/shown", "/policies", "/releases", "/assessments", "/evidence", "/proxies/" + tenant + "/web"} {
			stranger.Shows(t, path, http.StatusForbidden, "you may not")
			if _, body := stranger.send(t, path); strings.Contains(string(body), p.Spec.Plan.CorrelationID) {
				t.Errorf("%s shows the plan to a user without a right: %s", path, body)
			}
		}
		wantForbidden(t, stranger, "remediation/plans?namespace="+tenant, wire.MissingRight{Verb: "list", Kind: "RemediationPlan", Namespace: tenant})
		// The answer is the same for a plan that is there and for one that is not.
		_, there := stranger.send(t, "/api/v1/remediation/plans/"+tenant+".shown")
		_, missing := stranger.send(t, "/api/v1/remediation/plans/"+tenant+".none")
		if string(there) != string(missing) {
			t.Errorf("a plan that is there is told from one that is not: %s, %s", there, missing)
		}
	})
}

func wantForbidden(t *testing.T, b *browser, path string, right wire.MissingRight) {
	t.Helper()
	var p wire.Problem
	b.Want(t, "/api/v1/"+path, http.StatusForbidden, &p)
	if p.Right == nil || *p.Right != right {
		t.Errorf("%s lacks %+v, want %+v", path, p.Right, right)
	}
}
