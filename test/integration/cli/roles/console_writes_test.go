// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// write sends a request that changes an object. A console takes JSON alone.
func (b *browser) write(t *testing.T, method, path, body string, headers ...string) (code int, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.Base+"/api/v1/"+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Do(request)
	must(t, err)
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, answer
}

// bindInTenant gives a group roles of the chart in the namespace of the tenant, as the API server's own roles
// view, edit and admin have them by aggregation.
func bindInTenant(ctx context.Context, group string, roles ...string) error {
	for _, role := range roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: group + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		}
		if err := admin.Create(ctx, binding); err != nil {
			return fmt.Errorf("binding %s to %s: %w", role, group, err)
		}
		if err := apiserver.AwaitBound(ctx, admin, binding.Subjects[0], tenant, binding.RoleRef); err != nil {
			return err
		}
	}
	return nil
}

// The users of the table, each of one group.
const (
	nobody    = "strangers"
	viewer    = "viewers"
	editor    = "tenant-editors"
	owner     = "tenant-admins"
	author    = "authors"
	superuser = "system:masters"
)

// underWay makes a release whose run is under way, as the discovery server writes it.
func underWay(t *testing.T, name string) {
	t.Helper()
	ten := v1alpha1.Percent(10)
	stages := []v1alpha1.RolloutStage{{TrafficPercentage: &ten, Duration: &metav1.Duration{Duration: time.Minute}}, {TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}}}
	r := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: name, Stable: "stable",
			Variations: []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: name}},
				{Name: "next", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: name + "-next"}},
			},
			TrafficSplit: v1alpha1.TrafficSplit{Type: "Percentage", Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100), "next": v1alpha1.Percent(0)}},
			Rollout:      &v1alpha1.Rollout{Start: v1alpha1.RolloutStartManual, Strategy: &v1alpha1.RolloutStrategySpec{Stages: stages}},
		},
	}
	must(t, admin.Create(t.Context(), r))
	r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{
		Number: 1, State: "Created", From: v1alpha1.VariationRevision{Variation: "stable", Hash: "h1"}, To: v1alpha1.VariationRevision{Variation: "next", Hash: "h2"},
		AutoAdvance: v1alpha1.Enabled, RollbackOnFailure: v1alpha1.Enabled, HealthCheckIntervalSeconds: 30, StartTime: metav1.Now().Rfc3339Copy(),
		Stages: []v1alpha1.RolloutStageStatus{stage(1, 10), stage(2, 100)},
	}}
	must(t, admin.Status().Update(t.Context(), r))
}

func stage(number, percent int32) v1alpha1.RolloutStageStatus {
	return v1alpha1.RolloutStageStatus{
		Number: number, State: "Pending", TrafficPercentage: new(v1alpha1.Percent(percent)), DurationSeconds: new(int64(60)),
		HealthThreshold: new(v1alpha1.Percent(95)), RequireApproval: v1alpha1.Disabled,
	}
}

// writeOf is one operation, and the groups whose users may do it.
type writeOf struct {
	method, path, body string
	status             int
	allowed            []string
}

// writesAs are the operations that change objects, in an order in which one user can do them all, about the objects of
// a name.
func writesAs(name string) []writeOf {
	policy := `{"name":"` + name + `","environmentName":"production","trigger":"immediate","action":"reconcile","strategy":"rolling"}`
	release := `{"namespace":"shop","name":"made-` + name + `","serviceName":"made-` + name + `","variations":[` +
		`{"name":"A","variation":"stable","workload":{"kind":"Deployment","name":"web"}},{"name":"B","workload":{"kind":"Deployment","name":"web-next"}}],` +
		`"trafficSplit":{"type":"percentage","percentages":{"A":90,"B":10}}}`
	ofPolicies, ofNamespace, ofReleases := []string{author, superuser}, []string{owner, superuser}, []string{editor, owner, superuser}
	plan, run, object := "remediation/plans/shop."+name+"/", "ab-releases/shop."+name+"/", "baselines/shop.deployments.apps."+name+"/"
	return []writeOf{
		{"POST", "remediation/policies", policy, 201, ofPolicies},
		{"PUT", "remediation/policies/for-" + name, strings.Replace(policy, `"`+name+`"`, `"for-`+name+`"`, 1), 200, ofPolicies},
		{"POST", "remediation/policies/for-" + name + "/activate", `{"groups":[],"reason":"INC-9"}`, 200, ofPolicies},
		{"POST", "remediation/policies/for-" + name + "/deactivate", ``, 200, ofPolicies},
		{"DELETE", "remediation/policies/for-" + name, ``, 204, ofPolicies},
		{"POST", plan + "execute", `{"reason":"INC-9"}`, 202, ofNamespace},
		{"POST", plan + "pause", ``, 202, ofNamespace},
		{"POST", strings.TrimSuffix(plan, "/") + "-paused/resume", ``, 202, ofNamespace},
		{"POST", plan + "cancel", ``, 202, ofNamespace},
		{"POST", object + "check", ``, 202, ofNamespace},
		{"POST", "remediation/execute", `{"policyId":"writes-` + name + `","targets":["shop.deployments.apps.` + name + `"],"reason":"INC-9"}`, 202, ofNamespace},
		{"POST", object + "accept", `{"hash":"pl1:sha256:` + strings.Repeat("d", 64) + `"}`, 202, ofNamespace},
		{"POST", "ab-releases", release, 201, ofReleases},
		{"POST", run + "start", ``, 202, ofReleases},
		{"POST", run + "advance", `{"stageNumber":2}`, 202, ofReleases},
		{"POST", run + "approve", `{"runNumber":1,"stageNumber":1}`, 202, ofReleases},
		{"POST", run + "promote", `{"variation":"B"}`, 202, ofReleases},
		{"POST", run + "rollback", `{"reason":"INC-9"}`, 202, ofReleases},
		// The policy is active until here: a halt of a halted one needs no right.
		{"POST", "remediation/policies/writes-" + name + "/halt", ``, 200, ofPolicies},
	}
}

// The API server decides what a console writes, by the roles of the chart. A refusal names the right.
func TestAConsoleWritesWhatItsUserMay(t *testing.T) {
	for _, group := range []string{nobody, viewer, editor, owner, author, superuser} {
		t.Run(group, func(t *testing.T) {
			user := userOf(group)
			checkWrites(t, openConsole(t, user, group), user, group, "console-"+nameOf(group))
		})
	}
}

// nameOf is the name of a group in names of objects, and userOf is its only user.
func nameOf(group string) string { return strings.TrimPrefix(group, "system:") }
func userOf(group string) string { return "user-of-" + nameOf(group) }

// makeWritable makes the objects of a name about which all operations can be asked.
func makeWritable(t *testing.T, name string) {
	t.Helper()
	policyOf := func(name string) {
		must(t, admin.Create(t.Context(), &v1alpha1.RemediationPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.RemediationPolicySpec{
				EnvironmentName: "production", Mode: v1alpha1.PolicyModeHalted, Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
			},
		}))
	}
	policyOf("writes-" + name)
	eventually(t, "ann", author, "policy", "activate", "writes-"+name, "--yes", "--wait=false")
	policyOf("for-" + name)
	plan(t, name)
	eventually(t, "oz", "operators", "plan", "pause", plan(t, name+"-paused").Name, "--wait=false")
	underWay(t, name)
	drifted(t, name)
}

// checkWrites demands that a user of a group does the writes that the group may, and no other.
func checkWrites(t *testing.T, b *browser, user, group, name string) {
	t.Helper()
	makeWritable(t, name)
	for _, w := range writesAs(name) {
		code, body := b.write(t, w.method, w.path, w.body, "If-Match", "*")
		if slices.Contains(w.allowed, group) {
			if code != w.status {
				t.Errorf("%s %s: %d %s, want %d", w.method, w.path, code, body, w.status)
			}
			continue
		}
		var p wire.Problem
		if err := json.Unmarshal(body, &p); err != nil || code != http.StatusForbidden || p.Right == nil || p.Right.Verb == "" || p.Right.Kind == "" {
			t.Errorf("%s %s: %d %s, want a right that is missing (%v)", w.method, w.path, code, body, err)
		}
	}
	checkAuthor(t, user, group, name)
}

// checkAuthor demands that what a user has asked for has the name that the API server knows the user by.
func checkAuthor(t *testing.T, user, group, name string) {
	t.Helper()
	key := client.ObjectKey{Namespace: tenant, Name: name}
	wanted := map[bool]string{true: user}
	var p v1alpha1.RemediationPlan
	must(t, admin.Get(t.Context(), key, &p))
	if got := p.Spec.Control.RequestedBy; got != wanted[group == owner || group == superuser] {
		t.Errorf("the plan was asked for by %q", got)
	}
	var r v1alpha1.ABRelease
	must(t, admin.Get(t.Context(), key, &r))
	asked := ""
	if c := r.Spec.Rollout.Control; c != nil {
		asked = c.RequestedBy
	}
	if asked != wanted[group == editor || group == owner || group == superuser] {
		t.Errorf("the release was asked for by %q", asked)
	}
}

// What the API server refuses has the names of the API, and a repeat finds what the first request made.
func TestAConsoleSpeaksItsOwnSpellingOfWhatTheAPIServerRefuses(t *testing.T) {
	b := openConsole(t, "root", superuser)
	policy := func(fields string) string {
		return `{"name":"refused","environmentName":"production","trigger":"immediate","action":"reconcile",` + fields + `}`
	}
	release := func(fields string) string {
		return `{"namespace":"shop","name":"refused","variations":[{"name":"A","workload":{"kind":"Deployment","name":"web"}},{"name":"B","workload":{"kind":"Deployment","name":"next"}}],` + fields + `}`
	}
	split := `"trafficSplit":{"type":"percentage","percentages":{"A":90,"B":10}}`
	for name, tc := range map[string]struct{ path, body, location string }{
		"a limit below the least":        {"remediation/policies", policy(`"maxRemediationsPerHour":-1`), "body.maxRemediationsPerHour"},
		"a limit above another":          {"remediation/policies", policy(`"maxRemediationsPerHour":10,"maxRemediationsPerDay":5`), "body.maxRemediationsPerHour"},
		"a trigger without its age":      {"remediation/policies", strings.Replace(policy(`"strategy":"rolling"`), "immediate", "age_threshold", 1), "body.minimumDriftAge"},
		"a window without its end":       {"remediation/policies", policy(`"allowedStartTime":"01:00"`), "body.allowedStartTime"},
		"a channel without its Secret":   {"remediation/policies", policy(`"notifications":{"channels":[{"name":"ops","type":"slack"}]}`), "body.notifications.channels[0].destination"},
		"a name that is none":            {"remediation/policies", strings.Replace(policy(`"strategy":"rolling"`), "refused", "Not A Name", 1), "body.name"},
		"a policy without Environment":   {"remediation/policies", strings.Replace(policy(`"strategy":"rolling"`), `"environmentName":"production",`, "", 1), "body.environmentName"},
		"a release without a service":    {"ab-releases", release(split), "body.serviceName"},
		"a percentage of three decimals": {"ab-releases", release(`"serviceName":"web","trafficSplit":{"type":"percentage","percentages":{"A":99.999,"B":0.001}}`), "body.trafficSplit.percentages"},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := b.write(t, "POST", tc.path, tc.body)
			var p wire.Problem
			must(t, json.Unmarshal(answer, &p))
			at := slices.IndexFunc(p.Errors, func(e wire.FieldError) bool { return strings.HasPrefix(e.Location, tc.location) })
			if code != http.StatusUnprocessableEntity || at < 0 {
				t.Errorf("%d %s, want a fault at %s", code, answer, tc.location)
			}
		})
	}
	body := policy(`"strategy":"rolling"`)
	first, one := b.write(t, "POST", "remediation/policies", body, "Idempotency-Key", "k")
	again, two := b.write(t, "POST", "remediation/policies", body, "Idempotency-Key", "k")
	if first != http.StatusCreated || again != http.StatusCreated || string(one) != string(two) {
		t.Errorf("%d %s is %d %s when it is repeated", first, one, again, two)
	}
	if code, answer := b.write(t, "POST", "remediation/policies", policy(`"strategy":"canary"`), "Idempotency-Key", "k"); code != http.StatusUnprocessableEntity {
		t.Errorf("the key with another body: %d %s", code, answer)
	}
	tag := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.Base+"/api/v1/remediation/policies/refused", nil)
		must(t, err)
		response, err := b.Do(request)
		must(t, err)
		defer response.Body.Close()
		return response.Header.Get("ETag")
	}
	before := tag()
	if code, answer := b.write(t, "PUT", "remediation/policies/refused", policy(`"strategy":"canary"`), "If-Match", before); code != http.StatusOK {
		t.Errorf("the version that was seen is not replaced: %d %s", code, answer)
	}
	for method, content := range map[string]string{"PUT": body, "DELETE": ""} {
		if code, answer := b.write(t, method, "remediation/policies/refused", content, "If-Match", before); code != http.StatusPreconditionFailed {
			t.Errorf("%s of the version before: %d %s", method, code, answer)
		}
	}
	if code, answer := b.write(t, "DELETE", "remediation/policies/refused", "", "If-Match", tag()); code != http.StatusNoContent {
		t.Errorf("the version that is there is not deleted: %d %s", code, answer)
	}
	if code, answer := b.write(t, "POST", "remediation/preview", `{"policyId":"none"}`); code != http.StatusUnprocessableEntity {
		t.Errorf("a policy that is none is previewed: %d %s", code, answer)
	}
	var draft wire.Preview
	code, answer := b.write(t, "POST", "remediation/preview", `{"policy":`+body+`}`)
	must(t, json.Unmarshal(answer, &draft))
	if code != http.StatusOK || draft.Plans == nil {
		t.Errorf("a policy that is not stored is not previewed: %d %s", code, answer)
	}
}
