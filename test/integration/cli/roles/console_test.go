// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// browser has the cookie of a console that runs as a user.
type browser struct {
	*http.Client
	// address has the key, and base has none.
	base, address string
}

// openConsole runs the console as a user of a group until the test ends, and opens its address.
func openConsole(t *testing.T, user, group string) *browser {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := []string{"--kubeconfig", kubeconfig, "--as", user, "--as-group", group, "--as-group", "system:authenticated", "console", "--no-browser"}
		code := cli.Run(ctx, args, cli.Environment{In: strings.NewReader(""), Out: printed, Err: io.Discard, Now: time.Now, Version: "test"})
		printed.CloseWithError(fmt.Errorf("the console ended with %d", code))
		ended <- code
	}()
	t.Cleanup(func() {
		end()
		if code := <-ended; code != 0 {
			t.Errorf("the console of %s ended with %d", user, code)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	address := strings.TrimPrefix(strings.TrimSpace(line), "Serving on ")
	jar, err := cookiejar.New(nil)
	must(t, err)
	base, _, _ := strings.Cut(address, "/?")
	b := &browser{&http.Client{Jar: jar}, base, address}
	t.Cleanup(b.CloseIdleConnections)
	if code, body := b.send(t, strings.TrimPrefix(b.withKey(t, "/whoami"), b.base)); code != http.StatusOK {
		t.Fatalf("the address of %s: %d %s", user, code, body)
	}
	return b
}

func (b *browser) send(t *testing.T, path string) (code int, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+path, nil)
	must(t, err)
	response, err := b.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, body
}

// want demands a status, and reads the answer into a value.
func (b *browser) want(t *testing.T, path string, status int, into any) {
	t.Helper()
	code, body := b.send(t, path)
	if code != status {
		t.Fatalf("%s: %d %s, want %d", path, code, body, status)
	}
	must(t, json.Unmarshal(body, into))
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
		viewer.want(t, "/api/v1/remediation/plans/"+string(p.UID), http.StatusOK, &one)
		if one.Name != "shown" || one.Namespace != tenant {
			t.Errorf("the plan is %s/%s", one.Namespace, one.Name)
		}
		for _, path := range []string{
			"remediation/policies", "remediation/history", "ab-releases", "rollout-strategies", "baselines", "environments", "guards", "assessments",
		} {
			viewer.want(t, "/api/v1/"+path, http.StatusOK, &[]any{})
		}
	})
	t.Run("a viewer opens each page", func(t *testing.T) {
		for path, words := range map[string]string{
			"/": "guarded:", "/drift": "Findings, worst first", "/plans": tenant + "/shown", "/plans/" + tenant + "/shown": "Steps of batch", "/policies": "Policies by Environment",
			"/releases": "Releases", "/assessments": "Assessments, those under way first", "/whoami": "vic", "/whoami?namespace=" + tenant: "in namespace " + tenant,
		} {
			viewer.shows(t, path, http.StatusOK, words)
		}
		if code, body := viewer.send(t, "/whoami"); strings.Contains(string(body), "not known") {
			t.Errorf("a right is not known: %d %s", code, body)
		}
	})
	t.Run("an editor opens the pages of one namespace", func(t *testing.T) {
		editor.shows(t, "/plans?namespace="+tenant, http.StatusOK, tenant+"/shown")
		editor.shows(t, "/?namespace="+tenant, http.StatusOK, "Not known: you may not list")
		editor.shows(t, "/drift", http.StatusForbidden, "you may not list Baseline in the whole cluster")
		editor.shows(t, "/policies", http.StatusForbidden, "you may not list RemediationPolicy in the whole cluster")
	})
	t.Run("an editor reads one namespace", func(t *testing.T) {
		var plans []wire.Plan
		editor.want(t, "/api/v1/remediation/plans?namespace="+tenant, http.StatusOK, &plans)
		if len(plans) == 0 {
			t.Error("the editor sees no plan")
		}
		editor.want(t, "/api/v1/remediation/plans/"+tenant+".shown", http.StatusOK, &wire.Plan{})
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
		stranger.want(t, "/api/v1/whoami", http.StatusOK, &me)
		if me.User != "ned" {
			t.Errorf("the user is %q", me.User)
		}
		stranger.shows(t, "/whoami", http.StatusOK, "plumbline-view")
		for _, path := range []string{"/", "/drift?namespace=" + tenant, "/plans?namespace=" + tenant, "/plans/" + tenant + "/shown", "/policies", "/releases", "/assessments"} {
			stranger.shows(t, path, http.StatusForbidden, "you may not")
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

// shows demands a page with a status that has some words.
func (b *browser) shows(t *testing.T, path string, status int, words string) {
	t.Helper()
	if code, body := b.send(t, path); code != status || !strings.Contains(string(body), words) {
		t.Errorf("%s: %d, want %d and %q in %s", path, code, status, words, body)
	}
}

func wantForbidden(t *testing.T, b *browser, path string, right wire.MissingRight) {
	t.Helper()
	var p wire.Problem
	b.want(t, "/api/v1/"+path, http.StatusForbidden, &p)
	if p.Right == nil || *p.Right != right {
		t.Errorf("%s lacks %+v, want %+v", path, p.Right, right)
	}
}
