// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A caller chooses the revision on the page of the object, sees the preview of the rollback, and sends the request.
func TestARollbackToARevisionAsksAgain(t *testing.T) {
	const object = "/objects/shop/deployments.apps.web"
	b := open(t, workshop(t), alice())
	b.cluster.Allows = allowsAll
	if body := b.get(object).Body.String(); !strings.Contains(body, `<select name="revisionNumber"`) || !strings.Contains(body, `<option value="3">3, `) {
		t.Errorf("the page of the object has no choice of revisions: %s", body)
	}
	for name, tc := range map[string]struct {
		policy, revision string
		status           int
		words            []string
	}{
		"a policy that rolls back":         {"back", "3", http.StatusOK, []string{"The object is rolled back to revision 3.", `name="revisionNumber" value="3"`, "<h2>Preview</h2>"}},
		"no revision":                      {"back", "", http.StatusOK, []string{"<h2>Preview</h2>"}},
		"a policy that does not roll back": {"production", "3", http.StatusOK, []string{"Not now: a revision is for a policy that rolls back, and the action of policy production is Reconcile."}},
		"a revision that is none":          {"back", "0", http.StatusBadRequest, []string{"a revision has a number from 1 on"}},
		"a revision that is no number":     {"back", "x", http.StatusBadRequest, []string{"a revision has a number from 1 on"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.get(object + "/remediate?" + url.Values{"policy": {tc.policy}, "revisionNumber": {tc.revision}}.Encode())
			body := w.Body.String()
			if w.Code != tc.status {
				t.Errorf("%d, want %d", w.Code, tc.status)
			}
			for _, words := range tc.words {
				if !strings.Contains(body, words) {
					t.Errorf("%q is not in %s", words, body)
				}
			}
			if tc.revision == "" && strings.Contains(body, "rolled back to revision") {
				t.Error("the page names a revision that was not chosen")
			}
			checkStructure(t, name, body)
		})
	}
}
