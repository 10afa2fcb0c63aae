// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/console"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// workshop is the shop, with plans of which something can be asked.
func workshop(t *testing.T) clitest.Cluster {
	t.Helper()
	f := shop(t)
	f.Objects = append(f.Objects, clitest.PlanOf("paused", clitest.InPhase(v1alpha1.PlanPaused), clitest.Asked(v1alpha1.PlanPause, "bob", "")), clitest.PlanOf("ended", clitest.InPhase(v1alpha1.PlanSucceeded)),
		clitest.PolicyOf("account", clitest.ActsAs("ops/fixer")), clitest.PolicyOf("back", clitest.ActiveBy("alice"), func(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionRollback }), clitest.LedgerFor("staging", actions.ScopeEnvironment),
		clitest.BaselineOf("away", func(b *v1alpha1.Baseline) {
			b.Status.Quarantine = &v1alpha1.Quarantine{Token: "plan-0", By: "RemediationPlan/p", Reason: "an image of nobody", StartTime: clitest.Before(time.Minute)}
		}))
	return f
}

// stored reads an object of the namespace shop, or of the cluster.
func stored[T client.Object](b *browser, object T, name string) T {
	b.t.Helper()
	key := client.ObjectKey{Namespace: "shop", Name: name}
	switch any(object).(type) {
	case *v1alpha1.RemediationPolicy:
		key.Namespace = ""
	case *v1alpha1.RemediationLedger:
		key.Namespace = "plumbline-system"
	}
	clitest.Must(b.t, b.Get(b.t.Context(), key, object))
	return object
}

func controlOf(name string) func(*browser) any {
	return func(b *browser) any { return stored(b, &v1alpha1.RemediationPlan{}, name).Spec.Control }
}

func rolloutControl(b *browser) any {
	return *stored(b, &v1alpha1.ABRelease{}, "web").Spec.Rollout.Control
}

// requestOf is the only request for a remediation that is stored.
func requestOf(b *browser) any {
	var all v1alpha1.RemediationRequestList
	clitest.Must(b.t, b.List(b.t.Context(), &all))
	if len(all.Items) != 1 {
		return len(all.Items)
	}
	s := all.Items[0].Spec
	return []any{s.PolicyName, s.RequestedBy, s.Reason, s.Targets}
}

func isPaused(b *browser) any {
	return stored(b, &v1alpha1.ABRelease{}, "web").Spec.Rollout.Pause == v1alpha1.Enabled
}

func haltOf(name string) func(*browser) any {
	return func(b *browser) any { return stored(b, &v1alpha1.RemediationLedger{}, name).Spec.Halt }
}

// observed is the hash of the drifted object.
func observed(b *browser) string {
	return stored(b, &v1alpha1.Baseline{}, "deployments.apps.web").Status.Observed.Hash
}

const reason = "INC-9, agreed"

// version is the ETag of the policy of the shop.
const version = `"` + clitest.PolicyUID + `.3"`

// Each form asks in the name of the caller, by the operation of the REST API, and leads back to the page.
func TestAFormAsksInTheNameOfTheCaller(t *testing.T) {
	const web = "/objects/shop/deployments.apps.web"
	asks := func(verb v1alpha1.PlanVerb) v1alpha1.PlanControl {
		return v1alpha1.PlanControl{Verb: verb, RequestedBy: "alice", Reason: reason}
	}
	tests := map[string]struct {
		page, verb string
		values     url.Values
		got        func(*browser) any
		want       any
	}{
		"a plan is executed":  {"/plans/shop/later", "execute", url.Values{"reason": {reason}}, controlOf("later"), asks(v1alpha1.PlanExecute)},
		"a plan is paused":    {"/plans/shop/later", "pause", url.Values{"reason": {reason}}, controlOf("later"), asks(v1alpha1.PlanPause)},
		"a plan is resumed":   {"/plans/shop/paused", "resume", url.Values{"reason": {reason}}, controlOf("paused"), asks("")},
		"a plan is canceled":  {"/plans/shop/later", "cancel", url.Values{"reason": {reason}}, controlOf("later"), asks(v1alpha1.PlanCancel)},
		"no reason is needed": {"/plans/shop/later", "cancel", nil, controlOf("later"), v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}},
		"a drift is accepted": {web, "accept", url.Values{"reason": {reason}, "hash": {"HASH"}}, func(b *browser) any {
			a := stored(b, &v1alpha1.Baseline{}, "deployments.apps.web").Spec.Accept
			return []any{a.Hash == observed(b), a.RequestedBy, a.RequestedByGroups, a.Reason}
		}, []any{true, "alice", []string{"sre"}, reason}},
		"an object is checked": {web, "check", nil, func(b *browser) any {
			return stored(b, &v1alpha1.Baseline{}, "deployments.apps.web").Annotations[v1alpha1.AnnotationCheckRequested] != ""
		}, true},
		"an object is remediated": {web, "remediate", url.Values{"reason": {reason}, "policy": {"production"}}, requestOf, []any{"production", "alice", reason, []v1alpha1.RequestedTarget{{BaselineName: "deployments.apps.web", DriftedHash: "HASH"}}}},
		"a policy is deactivated": {"/policies/production", "deactivate", url.Values{"reason": {reason}}, func(b *browser) any {
			p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
			return []any{p.Spec.Mode, p.Annotations[v1alpha1.AnnotationModeReason]}
		}, []any{v1alpha1.PolicyModeObserveOnly, reason}},
		"a policy is halted": {"/policies/production", "halt", url.Values{"reason": {reason}}, func(b *browser) any {
			p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
			return []any{p.Spec.Mode, p.Spec.RequestedBy, p.Annotations[v1alpha1.AnnotationModeReason]}
		}, []any{v1alpha1.PolicyModeHalted, "alice", reason}},
		"an object is rolled back to a revision": {web, "remediate", url.Values{"reason": {reason}, "policy": {"back"}, "revisionNumber": {"3"}}, requestOf, []any{"back", "alice", reason, []v1alpha1.RequestedTarget{{BaselineName: "deployments.apps.web", DriftedHash: "HASH", Revision: "deployments.apps.web-3"}}}},
		"a policy is activated with one group": {"/policies/production", "activate", url.Values{"choose": {"groups"}, "groups": {"sre"}, "reason": {reason}}, func(b *browser) any {
			p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
			return []any{p.Spec.Mode, p.Spec.RequestedBy, p.Spec.RequestedByGroups}
		}, []any{v1alpha1.PolicyModeActive, "alice", []string{"sre"}}},
		"a policy is edited": {"/policies/production", "edit", url.Values{"version": {version}, "confirmed": {"yes"}, "maxRemediationsPerHour": {"7"}, "minimumDriftAge": {"00:10:00"}}, func(b *browser) any {
			p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
			return []any{p.Spec.Safety.MaxPerHour, p.Spec.Safety.MaxPerDay, p.Spec.MinimumDriftAge.Duration, p.Spec.RequestedBy}
		}, []any{int32(7), int32(50), 10 * time.Minute, "alice"}},
		"a run is started":         {"/releases/shop/web", "start", url.Values{"reason": {reason}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Start", Run: 2, RequestedBy: "alice", Reason: reason}},
		"a run goes on":            {"/releases/shop/web", "advance", url.Values{"stageNumber": {""}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Advance", Run: 2, RequestedBy: "alice"}},
		"a run goes on to a stage": {"/releases/shop/web", "advance", url.Values{"stageNumber": {"2"}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Advance", Run: 2, Stage: 2, RequestedBy: "alice"}},
		"a stage is approved":      {"/releases/shop/web", "approve", url.Values{"runNumber": {"2"}, "stageNumber": {"1"}, "reason": {reason}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Approve", Run: 2, Stage: 1, RequestedBy: "alice", Reason: reason}},
		"a stage is skipped":       {"/releases/shop/web", "skip", url.Values{"runNumber": {"2"}, "stageNumber": {"1"}, "reason": {reason}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Skip", Run: 2, Stage: 1, RequestedBy: "alice", Reason: reason}},
		"a run is tried again":     {"/releases/shop/web", "retry", url.Values{"reason": {reason}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Retry", Run: 2, RequestedBy: "alice", Reason: reason}},
		"a run is paused":          {"/releases/shop/web", "pause", nil, isPaused, true},
		"a run is resumed":         {"/releases/shop/web", "resume", nil, isPaused, false},
		"remediation is halted":    {"/ledgers/plumbline-system/staging", "halt", url.Values{"reason": {reason}}, haltOf("staging"), &v1alpha1.LedgerHalt{RequestedBy: "alice", Reason: reason}},
		"remediation goes on":      {"/ledgers/plumbline-system/production", "unhalt", nil, haltOf("production"), (*v1alpha1.LedgerHalt)(nil)},
		"a quarantine is lifted": {"/objects/shop/deployments.apps.away", "lift", url.Values{"token": {"plan-0"}, "reason": {reason}}, func(b *browser) any {
			return stored(b, &v1alpha1.Baseline{}, "deployments.apps.away").Spec.Lift
		}, &v1alpha1.LiftRequest{Token: "plan-0", RequestedBy: "alice", RequestedByGroups: []string{"sre"}, Reason: reason}},
		"a variation is promoted":  {"/releases/shop/web", "promote", url.Values{"variation": {"B"}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Promote", Run: 2, Variation: "next", RequestedBy: "alice"}},
		"a release is rolled back": {"/releases/shop/web", "rollback", url.Values{"reason": {reason}}, rolloutControl, v1alpha1.RolloutControl{Verb: "Rollback", Run: 2, RequestedBy: "alice", Reason: reason}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := open(t, workshop(t), alice())
			b.cluster.Allows = allowsAll
			hash := observed(b)
			if tc.values.Has("hash") {
				tc.values.Set("hash", hash)
			}
			w := b.post(tc.page+"/"+tc.verb, tc.values)
			if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != tc.page+"?sent="+tc.verb {
				t.Fatalf("%d to %q: %s", w.Code, to, w.Body)
			}
			want := tc.want
			if all, is := want.([]any); is {
				if targets, is := all[len(all)-1].([]v1alpha1.RequestedTarget); is {
					targets[0].DriftedHash = hash
				}
			}
			if diff := cmp.Diff(want, tc.got(b)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			page := b.get(w.Header().Get("Location"))
			if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), `<p class="sent" role="status">You asked to `) {
				t.Errorf("the page: %d %s", page.Code, page.Body)
			}
			checkStructure(t, name, page.Body.String())
		})
	}
}

// The typed text is still there, the reason of the refusal is beside it, and the focus is at the fault.
func TestAFormThatIsRefusedIsShownAgain(t *testing.T) {
	long := strings.Repeat("x", 257)
	for name, tc := range map[string]struct {
		target string
		values url.Values
		status int
		words  []string
	}{
		"a reason that is too long":                      {"/plans/shop/later/cancel", url.Values{"reason": {long}}, 422, []string{`value="` + long + `"`, `aria-invalid="true" aria-describedby="cancel-reason-error" autofocus`, `id="cancel-reason-error"`}},
		"a plan that has ended":                          {"/plans/shop/ended/cancel", url.Values{"reason": {reason}}, 409, []string{`role="alert" tabindex="-1" autofocus>the plan has ended as Succeeded</p>`, `value="` + reason + `"`}},
		"a state that was not shown":                     {"/objects/shop/deployments.apps.web/accept", url.Values{"hash": {"pl1:sha256:old"}, "reason": {reason}}, 409, []string{"it changed since it was shown: now ", `value="` + reason + `"`}},
		"no state":                                       {"/objects/shop/deployments.apps.web/accept", url.Values{"reason": {reason}}, 422, []string{`value="` + reason + `"`}},
		"an object in sync":                              {"/objects/shop/deployments.apps.calm/accept", url.Values{"hash": {"pl1:sha256:old"}}, 409, []string{"is in sync: there is no change to accept"}},
		"a drift that is none":                           {"/objects/shop/deployments.apps.calm/remediate", url.Values{"policy": {"production"}}, 409, []string{"it is in sync: there is no drift to remediate", "Remediate shop/deployment.apps/calm"}},
		"a revision of a policy that does not roll back": {"/objects/shop/deployments.apps.web/remediate", url.Values{"policy": {"production"}, "revisionNumber": {"3"}}, 422, []string{"policy production does not roll back: its action is reconcile", "Not now: a revision is for a policy that rolls back"}},
		"a revision that is not kept":                    {"/objects/shop/deployments.apps.web/remediate", url.Values{"policy": {"back"}, "revisionNumber": {"9"}, "reason": {reason}}, 422, []string{"revision 9 of shop.deployments.apps.web does not exist or is no longer kept", `value="` + reason + `"`}},
		"a revision that is no number":                   {"/objects/shop/deployments.apps.web/remediate", url.Values{"policy": {"back"}, "revisionNumber": {"newest"}}, 422, []string{"it is no number"}},
		"a policy that is none":                          {"/objects/shop/deployments.apps.web/remediate", url.Values{"policy": {"none"}}, 422, []string{"no RemediationPolicy has this id or name"}},
		"an activation of before":                        {"/policies/production/activate", url.Values{"version": {`"x.1"`}, "reason": {reason}}, 412, []string{"another user has changed the object", `value="` + reason + `"`}},
		"a group of others":                              {"/policies/production/activate", url.Values{"choose": {"groups"}, "groups": {"admins"}, "reason": {reason}}, 422, []string{"not in the group", "Activate policy production", `value="` + reason + `"`}},
		"a group that is not asked for":                  {"/policies/account/activate", url.Values{"choose": {"groups"}, "groups": {"sre"}}, 422, []string{"its groups cannot be chosen"}},
		"a run of before":                                {"/releases/shop/web/approve", url.Values{"runNumber": {"1"}, "stageNumber": {"1"}, "reason": {reason}}, 409, []string{"run 2 has taken the place of run 1", `value="` + reason + `"`, `name="runNumber" value="2"`}},
		"a stage that is none":                           {"/releases/shop/web/advance", url.Values{"stageNumber": {"9"}}, 422, []string{"run 2 has 2 stages", `id="advance-stageNumber-error"`}},
		"a stage that is no number":                      {"/releases/shop/web/advance", url.Values{"stageNumber": {"next"}}, 422, []string{"it is no number"}},
		"a skip of a run of before":                      {"/releases/shop/web/skip", url.Values{"runNumber": {"1"}, "stageNumber": {"1"}, "reason": {reason}}, 409, []string{"run 2 has taken the place of run 1", `value="` + reason + `"`, `name="runNumber" value="2"`}},
		"a halt without a reason":                        {"/ledgers/plumbline-system/staging/halt", url.Values{"reason": {""}}, 422, []string{`id="halt-reason-error"`, "Remediation of Environment staging"}},
		"a ledger that is none":                          {"/ledgers/plumbline-system/none/halt", url.Values{"reason": {reason}}, 404, []string{"no RemediationLedger has this id or name"}},
		"a quarantine of before":                         {"/objects/shop/deployments.apps.away/lift", url.Values{"token": {"plan-9"}, "reason": {reason}}, 409, []string{"its quarantine changed since it was shown", `value="` + reason + `"`, `name="token" value="plan-0"`}},
		"no quarantine":                                  {"/objects/shop/deployments.apps.web/lift", url.Values{"token": {"plan-0"}}, 409, []string{"the object is not in quarantine"}},
		"a variation that is none":                       {"/releases/shop/web/promote", url.Values{"variation": {"H"}}, 422, []string{"the release has no variation H"}},
		"a version of before":                            {"/policies/production/edit", url.Values{"version": {`"x.1"`}, "confirmed": {"yes"}, "maxTargets": {"7"}}, 412, []string{"another user has changed the object", `name="maxTargets" value="7"`, `value="&#34;` + clitest.PolicyUID + `.3&#34;"`}},
		"a policy without a version":                     {"/policies/production/edit", url.Values{"maxTargets": {"7"}}, 428, []string{`name="maxTargets" value="7"`}},
		"a limit that is no number":                      {"/policies/production/edit", url.Values{"version": {version}, "maxTargets": {"many"}}, 422, []string{`id="edit-maxTargets-error"`, `name="maxTargets" value="many"`}},
		"a trigger that is none":                         {"/policies/production/edit", url.Values{"version": {version}, "trigger": {"sometimes"}}, 422, []string{`id="edit-trigger-error"`}},
		"a duration that is none":                        {"/policies/production/edit", url.Values{"version": {version}, "minimumDriftAge": {"soon"}}, 422, []string{`id="edit-minimumDriftAge-error"`, `value="soon"`}},
		"an input that is none":                          {"/plans/shop/later/cancel", url.Values{"verb": {"Execute"}}, 400, []string{"the form takes each of these inputs once: reason"}},
		"an input that comes twice":                      {"/plans/shop/later/cancel", url.Values{"reason": {"a", "b"}}, 400, []string{"the form takes each of these inputs once: reason"}},
		"a text that is no UTF-8":                        {"/plans/shop/later/cancel", url.Values{"reason": {"\xff"}}, 422, []string{"a value of the form is no UTF-8"}},
		"a form of 80 KiB":                               {"/plans/shop/later/cancel", url.Values{"reason": {strings.Repeat("x", 80<<10)}}, 413, []string{"a form has at most 65536 bytes"}},
		"a query beside the form":                        {"/plans/shop/later/cancel?reason=x", nil, 400, []string{"the page takes no query"}},
		"a plan that is none":                            {"/plans/shop/none/cancel", nil, 404, []string{"no RemediationPlan has this id or name"}},
		"a name that leads upwards":                      {"/plans/shop/%2E%2E%2Fpods/cancel", nil, 404, []string{"can have this name"}},
		"markup as a reason":                             {"/plans/shop/ended/cancel", url.Values{"reason": {`"><script>alert(1)</script>`}}, 409, []string{`value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, workshop(t), alice())
			b.cluster.Allows = allowsAll
			before := versions(b)
			w := b.post(tc.target, tc.values)
			body := w.Body.String()
			if w.Code != tc.status {
				t.Errorf("%d, want %d", w.Code, tc.status)
			}
			for _, words := range tc.words {
				if !strings.Contains(body, words) {
					t.Errorf("%q is not in %s", words, body)
				}
			}
			if diff := cmp.Diff(before, versions(b)); diff != "" {
				t.Errorf("something was stored: %s", diff)
			}
			checkStructure(t, name, body)
		})
	}
}

// versions are those of all objects that forms write.
func versions(b *browser) map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{&v1alpha1.RemediationPlanList{}, &v1alpha1.BaselineList{}, &v1alpha1.RemediationPolicyList{}, &v1alpha1.ABReleaseList{}, &v1alpha1.RemediationRequestList{}, &v1alpha1.RemediationLedgerList{}} {
		clitest.Must(b.t, b.List(b.t.Context(), list))
		clitest.Must(b.t, meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err == nil {
				all[object.GetName()] += " " + object.GetResourceVersion()
			}
			return err
		}))
	}
	return all
}

// No text of an address is shown, and none claims that something was sent that the page has no form for.
func TestAQueryCannotSayThatSomethingWasSent(t *testing.T) {
	b := open(t, workshop(t), alice())
	for _, sent := range []string{"accept", "<script>alert(1)</script>", "pause%20", "Pause"} {
		w := b.get("/plans/shop/later?sent=" + sent)
		if w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "You asked to") || strings.Contains(w.Body.String(), "alert(1)") {
			t.Errorf("%s: %d %s", sent, w.Code, w.Body)
		}
	}
	if w := b.get("/drift?sent=accept"); w.Code != http.StatusBadRequest {
		t.Errorf("a page without a form: %d", w.Code)
	}
}

// forms are the routes that take forms, about objects that are there.
func forms(b *browser) []string {
	var paths []string
	for _, pattern := range b.Routes() {
		if path, is := strings.CutPrefix(pattern, "POST "); is {
			name := map[bool]string{true: "production", false: "web"}[strings.HasPrefix(path, "/policies/")]
			if strings.HasPrefix(path, "/objects/") {
				name = "deployments.apps.web"
			}
			if strings.HasPrefix(path, "/plans/") {
				name = "later"
			}
			paths = append(paths, strings.NewReplacer("{namespace}", "shop", "{name}", name).Replace(path))
		}
	}
	return paths
}

func TestAFormNeedsTheKeyAndTheOriginOfTheConsole(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = allowsAll
	door, err := console.NewDoor(8090)
	clitest.Must(t, err)
	guarded, protected := door.Guard(b), httpapi.Protect(b, "127.0.0.1:8090")
	before, seen := versions(b), 0
	for _, path := range forms(b) {
		for name, tc := range map[string]struct {
			handler http.Handler
			headers map[string]string
			status  int
		}{
			"no key":                   {guarded, nil, http.StatusUnauthorized},
			"a key that is none":       {guarded, map[string]string{"Cookie": "plumbline-console-8090=x"}, http.StatusUnauthorized},
			"a page elsewhere":         {protected, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
			"a page at another port":   {protected, map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
			"an origin elsewhere":      {protected, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
			"an origin without a name": {protected, map[string]string{"Origin": "null"}, http.StatusForbidden},
			"a body of JSON":           {protected, map[string]string{"Content-Type": "application/json"}, http.StatusUnsupportedMediaType},
			"a body of another type":   {protected, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
			"a form in parts":          {protected, map[string]string{"Content-Type": "multipart/form-data; boundary=x"}, http.StatusUnsupportedMediaType},
		} {
			r := formOf(t, path, nil)
			r.Host = "127.0.0.1:8090"
			for header, value := range tc.headers {
				r.Header.Set(header, value)
			}
			w := httptest.NewRecorder()
			if tc.handler.ServeHTTP(w, r); w.Code != tc.status {
				t.Errorf("%s, %s: %d %s", path, name, w.Code, w.Body)
			}
			seen++
		}
	}
	if diff := cmp.Diff(before, versions(b)); diff != "" {
		t.Errorf("something was stored: %s", diff)
	}
	if seen < 9*len(slices.Concat(planVerbs(), objectVerbs(), policyVerbs(), releaseVerbs(), ledgerVerbs())) {
		t.Errorf("only %d requests were sent", seen)
	}
}
