// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// auditLine has the fields that a test reads of a line of the audit log.
type auditLine struct {
	UserAgent string                    `json:"userAgent"`
	User      struct{ Username string } `json:"user"`
	ObjectRef struct{ Resource, Name string }
}

func auditEvent(t *testing.T, line string) (event auditLine) {
	t.Helper()
	must(t, json.Unmarshal([]byte(line), &event))
	return event
}

// bindAccount gives a service account of the tenant a role of the chart there.
func bindAccount(t *testing.T, name, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenant, Name: name}},
	}
	must(t, admin.Create(t.Context(), binding))
	must(t, apiserver.AwaitBound(t.Context(), admin, binding.Subjects[0], tenant, binding.RoleRef))
}

// The API server decides about the writes of the API, by the roles of the chart and the token of the caller.
func TestTheAPIWritesWhatItsCallerMay(t *testing.T) {
	s := startServe(t)
	for _, group := range []string{nobody, viewer, editor, owner, author, superuser} {
		t.Run(group, func(t *testing.T) {
			name := "served-" + nameOf(group)
			checkWrites(t, s.as(t, tokenOf(group)), userOf(group), group, name)
			// The audit log names the caller alone.
			for _, resource := range []string{"remediationplans", "abreleases", "baselines", "remediationpolicies"} {
				for _, user := range audited(t, resource, name) {
					if user != userOf(group) {
						t.Errorf("the audit log names %s for %s %s", user, resource, name)
					}
				}
			}
			if users := audited(t, "remediationplans", name); slices.Contains([]string{owner, superuser}, group) && len(users) == 0 {
				t.Error("the audit log names no user for the plan")
			}
		})
	}
	for _, secret := range []string{"token-of", "Bearer", "eyJ"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if got := strings.Count(s.log.String(), `"msg":"api.write"`); got != 6*len(writesAs("x")) {
		t.Errorf("the log has %d lines about writes, want %d", got, 6*len(writesAs("x")))
	}
}

// reads are the lists, with whether the kind is of a namespace.
var reads = map[string]bool{
	"remediation/policies": false, "rollout-strategies": false, "environments": false,
	"remediation/plans": true, "remediation/history?source=plan": true, "ab-releases": true, "baselines": true, "assessments": true,
}

// A caller reads the objects that the API server lets them read, and learns of no other.
func TestTheAPIShowsWhatItsCallerMayRead(t *testing.T) {
	s := startServe(t)
	ours, theirs := planIn(t, tenant, "ours"), planIn(t, neighbor, "theirs")
	s.awaitPlan(t, theirs)
	t.Run("a viewer of all", func(t *testing.T) {
		b := s.as(t, tokenOf(viewer))
		for path := range reads {
			b.Want(t, "/api/v1/"+path, http.StatusOK, &[]any{})
		}
		b.Want(t, "/api/v1/guards", http.StatusOK, &[]any{})
		for _, p := range []*v1alpha1.RemediationPlan{ours, theirs} {
			b.Want(t, "/api/v1/remediation/plans/"+string(p.UID), http.StatusOK, &wire.Plan{})
		}
		var me wire.Whoami
		b.Want(t, "/api/v1/whoami", http.StatusOK, &me)
		if diff := cmp.Diff(wire.Whoami{ID: "uid-of-" + viewer, User: userOf(viewer), Groups: []string{viewer, "system:authenticated"}}, me); diff != "" {
			t.Errorf("whoami (-want +got):\n%s", diff)
		}
	})
	t.Run("an editor of one namespace", func(t *testing.T) {
		b := s.as(t, tokenOf(editor))
		for path, namespaced := range reads {
			if !namespaced {
				code, _ := b.send(t, "/api/v1/"+path)
				if code != http.StatusForbidden {
					t.Errorf("%s: %d", path, code)
				}
				continue
			}
			code, body := b.send(t, "/api/v1/"+path)
			if code != http.StatusOK || strings.Contains(string(body), neighbor) || strings.Contains(string(body), "theirs") {
				t.Errorf("%s: %d %s", path, code, body)
			}
			and := "?"
			if strings.Contains(path, and) {
				and = "&"
			}
			wantForbidden(t, b, path+and+"namespace="+neighbor, wire.MissingRight{Verb: "list", Kind: kindOf(path), Namespace: neighbor})
		}
		b.Want(t, "/api/v1/remediation/plans/"+string(ours.UID), http.StatusOK, &wire.Plan{})
		b.Want(t, "/api/v1/remediation/plans/"+tenant+".ours", http.StatusOK, &wire.Plan{})
		// The id and the name of an object elsewhere tell no fact.
		for there, missing := range map[string]string{string(theirs.UID): "00000000-0000-4000-8000-000000000000", neighbor + ".theirs": neighbor + ".none"} {
			code, body := b.send(t, "/api/v1/remediation/plans/"+there)
			other, text := b.send(t, "/api/v1/remediation/plans/"+missing)
			if code < 400 || code != other || string(body) != string(text) {
				t.Errorf("%s: %d %s, and %s: %d %s", there, code, body, missing, other, text)
			}
		}
		if code, body := b.send(t, "/api/v1/remediation/plans/"+string(theirs.UID)); code != http.StatusNotFound {
			t.Errorf("an id that the caller may not read: %d %s", code, body)
		}
		for _, verb := range []string{"execute", "pause", "cancel"} {
			if code, body := b.write(t, "POST", "remediation/plans/"+string(theirs.UID)+"/"+verb, "{}"); code != http.StatusNotFound {
				t.Errorf("%s by an id that the caller may not read: %d %s", verb, code, body)
			}
		}
	})
	t.Run("a caller without any right", func(t *testing.T) {
		b := s.as(t, tokenOf(nobody))
		for path, namespaced := range reads {
			code, body := b.send(t, "/api/v1/"+path)
			if namespaced && (code != http.StatusOK || strings.TrimSpace(string(body)) != "[]") || !namespaced && code != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
		if code, body := b.send(t, "/api/v1/remediation/plans/"+string(ours.UID)); code != http.StatusNotFound {
			t.Errorf("an id: %d %s", code, body)
		}
	})
}

// kindOf names the objects of a list.
func kindOf(path string) string {
	return map[string]string{
		"remediation/plans": "RemediationPlan", "remediation/history?source=plan": "RemediationPlan", "ab-releases": "ABRelease", "baselines": "Baseline", "assessments": "EffectivenessAssessment",
	}[path]
}

// awaitPlan waits until the cache of the role has a plan.
func (s *served) awaitPlan(t *testing.T, p *v1alpha1.RemediationPlan) {
	t.Helper()
	b := s.as(t, tokenOf(superuser))
	poll.True(t, patience, "the API has the plan "+p.Name, func() bool {
		code, _ := b.send(t, "/api/v1/remediation/plans/"+p.Namespace+"."+p.Name)
		return code == http.StatusOK
	})
}

func TestACallerIsKnownByTheToken(t *testing.T) {
	s := startServe(t)
	makeAccount(t, "robot", "plumbline-view", "plumbline-plan-operator")
	const robot = "system:serviceaccount:" + tenant + ":robot"
	p := plan(t, "of-robot")
	s.awaitPlan(t, p)
	for name, tc := range map[string]struct {
		token  string
		read   int
		write  int
		writes string // the type of the problem of a write
	}{
		"no token":                        {"", 401, 401, "unauthenticated"},
		"a token that is none":            {"token-of-no-user", 401, 401, "unauthenticated"},
		"a token that looks like one":     {"e30.e30.c2ln", 401, 401, "unauthenticated"},
		"a user without a name":           {"token-unknown-0", 401, 401, "unauthenticated"},
		"the anonymous user":              {"token-unknown-1", 401, 401, "unauthenticated"},
		"another audience":                {accountToken(t, tenant, "robot", nil, "vault"), 401, 401, "unauthenticated"},
		"the audience of the proxies":     {accountToken(t, tenant, "robot", nil, "plumbline-xds"), 401, 401, "unauthenticated"},
		"the audience of the API alone":   {accountToken(t, tenant, "robot", nil, "plumbline-api"), 200, 403, "token-audience"},
		"the audience of the API server":  {accountToken(t, tenant, "robot", nil), 200, 202, ""},
		"both audiences":                  {accountToken(t, tenant, "robot", nil, audienceOfServer(t), "plumbline-api"), 200, 202, ""},
		"the API's audience among others": {accountToken(t, tenant, "robot", nil, "vault", "plumbline-api"), 200, 403, "token-audience"},
	} {
		t.Run(name, func(t *testing.T) {
			b := s.as(t, tc.token)
			if code, body := b.send(t, "/api/v1/remediation/plans/"+tenant+".of-robot"); code != tc.read {
				t.Errorf("a read: %d %s, want %d", code, body, tc.read)
			}
			reason := fmt.Sprintf(`{"reason":%q}`, name)
			code, body := b.write(t, "POST", "remediation/plans/"+tenant+".of-robot/pause", reason)
			if code == http.StatusOK && tc.write == http.StatusAccepted { // it is asked for already
				code = http.StatusAccepted
			}
			if code != tc.write || tc.writes != "" && !strings.Contains(string(body), wire.ProblemBase+tc.writes) {
				t.Errorf("a write: %d %s, want %d %s", code, body, tc.write, tc.writes)
			}
			if tc.read != http.StatusOK {
				return
			}
			var me wire.Whoami
			b.Want(t, "/api/v1/whoami", http.StatusOK, &me)
			if me.User != robot {
				t.Errorf("the caller is %q", me.User)
			}
		})
	}
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Spec.Control.RequestedBy; got != robot {
		t.Errorf("the plan was asked for by %q", got)
	}
	if got := slices.Compact(audited(t, "remediationplans", p.Name)); !slices.Equal(got, []string{robot}) {
		t.Errorf("the audit log names %q", got)
	}
}

// A name is one value, whatever is in it: of an answer, of a right, and of a line of the log.
func TestAnOddNameIsOneCallerAlone(t *testing.T) {
	s := startServe(t)
	p := plan(t, "seen-by-odd-names")
	s.awaitPlan(t, p)
	for i, name := range oddNames {
		b := s.as(t, "token-odd-"+strconv.Itoa(i))
		var me wire.Whoami
		b.Want(t, "/api/v1/whoami", http.StatusOK, &me)
		if me.User != name {
			t.Errorf("%q is %q", name, me.User)
		}
		b.Want(t, "/api/v1/remediation/plans/"+tenant+".seen-by-odd-names", http.StatusOK, &wire.Plan{}) // as a viewer
		if code, body := b.write(t, "POST", "remediation/plans/"+tenant+".seen-by-odd-names/cancel", "{}"); code != http.StatusForbidden {
			t.Errorf("%q cancels a plan: %d %s", name, code, body)
		}
	}
	var logged []string
	for line := range strings.Lines(s.log.String()) {
		var said struct{ Msg, User string }
		must(t, json.Unmarshal([]byte(line), &said))
		if said.Msg == "api.write" {
			logged = append(logged, said.User)
		}
	}
	if diff := cmp.Diff(oddNames, logged); diff != "" {
		t.Errorf("the log names (-want +got):\n%s", diff)
	}
}

// audienceOfServer is the audience of the API server itself, as it tells by a review of its own token.
func audienceOfServer(t *testing.T) string {
	t.Helper()
	return issuerOf(t, accountToken(t, tenant, "robot", nil))
}

// Rights, tokens, pods and accounts that are gone end with the memory of them.
func TestWhatIsTakenAwayEndsWithTheMemory(t *testing.T) {
	s := startServe(t)
	makeAccount(t, "leaving", "plumbline-view")
	makeAccount(t, "fired")
	p := planIn(t, tenant, "seen-by-leaving")
	s.awaitPlan(t, p)
	pod := podOf(t, "leaving", "leaving")
	ofAccount, ofPod, ofFired := s.as(t, accountToken(t, tenant, "leaving", nil)), s.as(t, accountToken(t, tenant, "leaving", pod)), s.as(t, accountToken(t, tenant, "fired", nil))
	path := "/api/v1/remediation/plans/" + tenant + ".seen-by-leaving"
	for name, b := range map[string]*browser{"the account": ofAccount, "the pod": ofPod} {
		if code, body := b.send(t, path); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	ofFired.Want(t, "/api/v1/whoami", http.StatusOK, &wire.Whoami{})

	must(t, admin.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "leaving-plumbline-view"}}))
	awaitDenied(t, "system:serviceaccount:"+tenant+":leaving")
	s.pass(10 * time.Second)
	if code, body := ofAccount.send(t, path); code != http.StatusForbidden {
		t.Errorf("a role that was taken away is used after the time of the memory: %d %s", code, body)
	}

	must(t, admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	must(t, admin.Delete(t.Context(), serviceAccount("fired")))
	for name, b := range map[string]*browser{"a token of a pod that was deleted": ofPod, "a token of an account that was deleted": ofFired} {
		poll.True(t, patience, name+" is refused", func() bool { // the API server itself believes a token for ten seconds more
			s.pass(time.Minute)
			code, _ := b.send(t, "/api/v1/whoami")
			return code == http.StatusUnauthorized
		})
	}
	ofAccount.Want(t, "/api/v1/whoami", http.StatusOK, &wire.Whoami{}) // another token of the account stays
}

// awaitDenied waits until the API server denies a user to read plans of the tenant.
func awaitDenied(t *testing.T, user string) {
	t.Helper()
	poll.True(t, patience, user+" may read no plans", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: tenant, Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "remediationplans"},
		}}
		must(t, admin.Create(t.Context(), review))
		return !review.Status.Allowed
	})
}
