// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A policy is saved as the page has shown the changes, and no object is stored before.
func TestAPolicyIsSavedAfterALookAtItsChanges(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = allowsAll
	before := versions(b)
	form := func(body string) url.Values {
		root, err := html.Parse(strings.NewReader(body))
		clitest.Must(t, err)
		values := url.Values{}
		for _, f := range elements(root, "form") {
			if id, _ := attribute(f, "id"); id != "edit" {
				continue
			}
			for _, input := range elements(f, "input") {
				name, _ := attribute(input, "name")
				value, _ := attribute(input, "value")
				_, checked := attribute(input, "checked")
				if kind, _ := attribute(input, "type"); kind != "checkbox" || checked {
					values.Add(name, value)
				}
			}
			for _, option := range elements(f, "option") {
				name, _ := attribute(option.Parent, "name")
				if _, selected := attribute(option, "selected"); selected {
					value, _ := attribute(option, "value")
					values.Set(name, value)
				}
			}
		}
		return values
	}
	values := form(b.get("/policies/production/edit").Body.String())
	values.Set("maxRemediationsPerHour", "7")
	values["allowedDays"] = []string{"monday", "friday"}
	w := b.post("/policies/production/edit", values)
	body := w.Body.String()
	checkGolden(t, "edit-changes", body)
	checkStructure(t, "changes", body)
	if diff := cmp.Diff(before, versions(b)); w.Code != http.StatusOK || diff != "" {
		t.Errorf("%d, and something was stored: %s", w.Code, diff)
	}
	if w := b.post("/policies/production/edit", form(body)); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/policies/production?sent=edit" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
	if diff := cmp.Diff([]v1alpha1.Weekday{"Monday", "Friday"}, p.Spec.Schedule.AllowedDays); diff != "" || p.Spec.Safety.MaxPerHour != 7 || p.Spec.Mode != v1alpha1.PolicyModeActive {
		t.Errorf("stored %+v %s", p.Spec, diff)
	}
}

// Another user changes a limit while the form is open: the form that is refused has that change, and the values of the
// caller.
func TestAConflictKeepsTheChangesOfBoth(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = allowsAll
	shown := url.Values{"shown": {`{"maxRemediationsPerHour":["10"],"maxRemediationsPerDay":["50"],"allowedDays":["monday"]}`}, "version": {`"x.1"`}}
	shown["maxRemediationsPerHour"], shown["maxRemediationsPerDay"], shown["allowedDays"] = []string{"10"}, []string{"60"}, []string{"monday"}
	p := stored(b, &v1alpha1.RemediationPolicy{}, "production")
	p.Spec.Safety.MaxPerHour = 8
	clitest.Must(t, b.Update(t.Context(), p))
	w := b.post("/policies/production/edit", shown)
	for _, want := range []string{`name="maxRemediationsPerHour" value="8"`, `name="maxRemediationsPerDay" value="60"`, `name="allowedDays" value="monday">`} {
		if w.Code != http.StatusPreconditionFailed || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, want %q in %s", w.Code, want, w.Body)
		}
	}
}
