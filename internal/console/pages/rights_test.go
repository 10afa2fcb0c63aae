// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
)

// The word of the API server about a right is the last one: a form that is not barred may be refused.
func TestAFormWithoutTheRightNamesIt(t *testing.T) {
	f := workshop(t)
	f.Hooks.Patch = func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "remediationplans"}, object.GetName(), errors.New(`User "alice" cannot patch resource "remediationplans" in API group "plumbline.dev" in the namespace "shop"`))
	}
	b := open(t, f, alice())
	b.cluster.Allows = allowsAll
	w := b.post("/plans/shop/later/cancel", url.Values{"reason": {reason}})
	if want := "you may not patch RemediationPlan in namespace shop: the ClusterRole plumbline-plan-operator has this right"; w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d, want %q in %s", w.Code, want, w.Body)
	}
}

// buttons are the words beside each button that the caller cannot press, by the id of the form; empty for
// one that can be pressed.
func buttons(t *testing.T, body string) map[string]string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	clitest.Must(t, err)
	found := map[string]string{}
	for _, form := range elements(root, "form") {
		id, _ := attribute(form, "id")
		for _, button := range elements(form, "button") {
			if _, disabled := attribute(button, "disabled"); !disabled {
				found[id] = ""
				continue
			}
			describedBy, _ := attribute(button, "aria-describedby")
			for _, p := range elements(form, "p") {
				if its, _ := attribute(p, "id"); its == describedBy {
					found[id] = p.FirstChild.Data
				}
			}
		}
	}
	delete(found, "filters")
	return found
}

func TestAButtonThatTheCallerMayNotPressSaysWhichRightItWants(t *testing.T) {
	ofPlans := "You may not patch remediationplans in namespace shop: the ClusterRole plumbline-plan-operator has this right."
	ofBaselines := "You may not patch baselines in namespace shop: the ClusterRole plumbline-admin has this right."
	ofRequests := "You may not create remediationrequests in namespace shop: the ClusterRole plumbline-remediator has this right."
	ofPolicies := "You may not patch remediationpolicies in the whole cluster: the ClusterRole plumbline-policy-author has this right."
	ofLedgers := "You may not patch remediationledgers in namespace plumbline-system: the ClusterRole plumbline-ledger-operator has this right."
	ofReleases := "You may not patch abreleases in namespace shop: the ClusterRole plumbline-release has this right."
	for target, tc := range map[string]struct {
		want  map[string]string
		asked int
	}{
		"/plans/shop/later":                  {map[string]string{"execute": ofPlans, "pause": ofPlans, "resume": "Not now: the plan is not paused.", "cancel": ofPlans}, 1},
		"/plans/shop/ended":                  {map[string]string{"execute": "Not now: the plan has ended as Succeeded.", "pause": "Not now: the plan has ended as Succeeded.", "resume": "Not now: the plan has ended as Succeeded.", "cancel": "Not now: the plan has ended as Succeeded."}, 0},
		"/objects/shop/deployments.apps.web": {map[string]string{"accept": ofBaselines, "check": ofBaselines, "remediate": ofRequests}, 2},
		"/objects/shop/deployments.apps.web/remediate?policy=production": {map[string]string{"remediate": ofRequests}, 1},
		"/policies/production":                 {map[string]string{"activate": ofPolicies, "deactivate": ofPolicies, "halt": ofPolicies, "edit": "You may not update remediationpolicies in the whole cluster: the ClusterRole plumbline-policy-author has this right."}, 2},
		"/policies/production/activate":        {map[string]string{"activate": ofPolicies}, 1},
		"/objects/shop/deployments.apps.away":  {map[string]string{"accept": "Not now: is in sync: there is no change to accept.", "check": ofBaselines, "lift": ofBaselines, "remediate": "Not now: it is in sync: there is no drift to remediate."}, 1},
		"/ledgers/plumbline-system/production": {map[string]string{"halt": "Not now: remediation is halted already, by bob.", "unhalt": ofLedgers}, 1},
		"/releases/shop/web": {map[string]string{
			"start": "Not now: the run has started already.", "advance": ofReleases, "rollback": ofReleases, "promote": ofReleases, "skip": ofReleases, "retry": ofReleases, "pause": ofReleases, "approve": "Not now: stage 1 needs no approval.",
		}, 1},
	} {
		t.Run(target, func(t *testing.T) {
			b := open(t, workshop(t), alice())
			var asked []authorizationv1.ResourceAttributes
			b.cluster.Allows = func(ctx context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
				asked = append(asked, *right)
				return allowsReads(ctx, right)
			}
			if diff := cmp.Diff(tc.want, buttons(t, b.get(target).Body.String())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(asked) != tc.asked {
				t.Errorf("%d rights were asked for, want %d: %v", len(asked), tc.asked, asked)
			}
		})
	}
}

func TestARightThatCannotBeAskedForBarsTheButton(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = func(context.Context, *authorizationv1.ResourceAttributes) (bool, error) {
		return true, apierrors.NewServiceUnavailable("away")
	}
	const want = "Whether you may do this is not known: the API server does not answer: try again"
	if got := buttons(t, b.get("/plans/shop/later").Body.String())["cancel"]; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// A promotion takes a verb of its own beside the right to write the release.
func TestAPromotionTakesTheVerbPromote(t *testing.T) {
	b := open(t, workshop(t), alice())
	b.cluster.Allows = func(_ context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
		return right.Verb == "patch", nil
	}
	got := buttons(t, b.get("/releases/shop/web").Body.String())
	for _, verb := range []string{"skip", "retry"} {
		if want := "You may not " + verb + " abreleases in namespace shop: the ClusterRole plumbline-release-approver has this right."; got[verb] != want {
			t.Errorf("%s says %q, want %q", verb, got[verb], want)
		}
	}
	if want := "You may not promote abreleases in namespace shop: the ClusterRole plumbline-release-approver has this right."; got["promote"] != want || got["rollback"] != "" {
		t.Errorf("%v, want %q", got, want)
	}
}
