// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestTheExampleOfANewPolicyIsThatOfTheRepository(t *testing.T) {
	raw, err := os.ReadFile("../../../examples/remediation.yaml")
	clitest.Must(t, err)
	var published v1alpha1.RemediationPolicy
	clitest.Must(t, yaml.UnmarshalStrict(raw, &published))
	fields := func(p *v1alpha1.RemediationPolicy) map[string][]string {
		body, err := policyBody(p)
		clitest.Must(t, err)
		return fieldsOf(body)
	}
	want, window := fields(&published), published.Spec.Schedule.MaintenanceWindow
	want["allowedStartTime"], want["allowedEndTime"] = []string{window.Start}, []string{window.End} // the form has no window
	if diff := cmp.Diff(want, fields(examplePolicy())); diff != "" {
		t.Errorf("(-published +form):\n%s", diff)
	}
}

func TestAPolicyIsCreatedFromAnExample(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = allowsAll
	page := b.get("/new-policy")
	body := page.Body.String()
	checkStructure(t, "creation", body)
	checkGolden(t, "new-policy-author", body)
	values := url.Values{"name": {"nightly"}, "environmentName": {"production"}}
	for _, day := range []string{"monday", "friday"} {
		values.Add("allowedDays", day)
	}
	for name, value := range map[string]string{"trigger": "age_threshold", "action": "reconcile", "strategy": "rolling", "minimumDriftAge": "00:20:00", "minimumSeverity": "", "maxRemediationsPerHour": "4", "allowedStartTime": "", "allowedEndTime": ""} {
		values.Set(name, value)
	}
	w := b.post("/new-policy/create", values)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/policies/nightly" {
		t.Fatalf("%d to %q: %s", w.Code, to, w.Body)
	}
	s := stored(b, &v1alpha1.RemediationPolicy{}, "nightly").Spec
	got := []any{s.EnvironmentName, s.Mode, string(s.Trigger), s.MinimumDriftAge.Duration, s.Safety.MaxPerHour, s.Schedule.AllowedDays, s.Schedule.MaintenanceWindow, s.RequestedBy}
	want := []any{"production", v1alpha1.PolicyMode(""), "AgeThreshold", 20 * time.Minute, int32(4), []v1alpha1.Weekday{"Monday", "Friday"}, (*v1alpha1.MaintenanceWindow)(nil), "alice"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if page := b.get("/policies/nightly"); page.Code != http.StatusOK {
		t.Errorf("the page of the policy: %d", page.Code)
	}
}

func TestACreationThatIsRefusedIsShownAgain(t *testing.T) {
	good := func(name, value string) url.Values {
		values := url.Values{"name": {"nightly"}, "environmentName": {"production"}, "trigger": {"immediate"}, "action": {"reconcile"}, "strategy": {"rolling"}, "maxTargets": {"7"}}
		values.Set(name, value)
		return values
	}
	for name, tc := range map[string]struct {
		values url.Values
		status int
		words  []string
	}{
		"a name that is taken":      {good("name", "production"), 409, []string{"there is a RemediationPolicy with this name", `name="name" value="production"`}},
		"no name":                   {good("name", ""), 422, []string{`id="create-name-error"`, `name="maxTargets" value="7"`}},
		"a limit that is no number": {good("maxTargets", "many"), 422, []string{`id="create-maxTargets-error"`, `name="maxTargets" value="many"`, `name="name" value="nightly"`}},
		"a version":                 {good("version", `"a.1"`), 400, []string{"the form takes each of these inputs once"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, workshop(t), alice())
			b.cluster.Allows = allowsAll
			before := versions(b)
			w := b.post("/new-policy/create", tc.values)
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
