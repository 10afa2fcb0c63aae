// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestALedgerIsHaltedInTheNameOfTheCaller(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, shop(t)...)
	a := newAnswers(t, c)
	path := remediationPath + "/ledgers/" + exampleLedger
	for _, step := range []struct {
		name, verb, body, user string
		want                   *wire.Halt
	}{
		{"a halt", "halt", `{"reason":"INC-9"}`, "alice", &wire.Halt{RequestedBy: "alice", Reason: "INC-9"}},
		{"another halt keeps the first one", "halt", `{"reason":"INC-10"}`, "bob", &wire.Halt{RequestedBy: "alice", Reason: "INC-9"}},
		{"the end", "unhalt", "", "bob", nil},
		{"an end of no halt", "unhalt", "", "bob", nil},
	} {
		c.user.Username = step.user
		shown := want[wire.Ledger](a, a.send(http.MethodPost, path+"/"+step.verb, step.body), http.StatusOK)
		if diff := cmp.Diff(step.want, shown.Halt); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		stored := &v1alpha1.RemediationLedger{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: "evidence"}, stored); err != nil {
			t.Fatal(err)
		}
		if (stored.Spec.Halt != nil) != (step.want != nil) || stored.Spec.Halt != nil && *stored.Spec.Halt != v1alpha1.LedgerHalt(*step.want) {
			t.Errorf("%s: stored is %+v", step.name, stored.Spec.Halt)
		}
	}
	a.wantProblem(a.send(http.MethodPost, path+"/halt", "{}"), wire.Invalid, "body")
	a.wantProblem(a.send(http.MethodPost, path+"/halt", `{"reason":""}`), wire.Invalid, "body.reason")
	a.wantProblem(a.send(http.MethodPost, remediationPath+"/ledgers/plumbline-system.none/halt", `{"reason":"x"}`), wire.NotFound, "")
}

func TestAQuarantineIsLiftedThatTheCallerHasSeen(t *testing.T) {
	ended := func(b *v1alpha1.Baseline) { b.Status.Quarantine = nil }
	for name, tc := range map[string]struct {
		id, body string
		hooks    interceptor.Funcs
		prefer   string
		status   int
		refusal  string
	}{
		"the one that is shown":          {"shop.deployment-away", `{"token":"plan-0","reason":"INC-9"}`, interceptor.Funcs{}, "", 202, ""},
		"a caller sees the end":          {"shop.deployment-away", `{"token":"plan-0","reason":"INC-9"}`, whenPatched(ended), "wait=10", 200, ""},
		"a later quarantine":             {"shop.deployment-away", `{"token":"plan-9"}`, interceptor.Funcs{}, "", 409, "its quarantine changed since it was shown: look at it again"},
		"an object that gets requests":   {"shop.deployment-calm", `{"token":"plan-0"}`, interceptor.Funcs{}, "", 409, "the object is not in quarantine"},
		"a request without a quarantine": {"shop.deployment-away", `{"reason":"INC-9"}`, interceptor.Funcs{}, "", 422, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calm := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-calm"}}
			c := newCluster(t, tc.hooks, append(shopAtWork(t), calm)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, Prefix+"/baselines/"+tc.id+"/lift", tc.body, "Prefer", tc.prefer)
			if w.Code != tc.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if tc.status >= http.StatusBadRequest {
				if p := a.problem(w); tc.refusal != "" && p.Detail != tc.refusal {
					t.Errorf("it says %q", p.Detail)
				}
				return
			}
			b := &v1alpha1.Baseline{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "deployment-away"}, b); err != nil {
				t.Fatal(err)
			}
			want := &v1alpha1.LiftRequest{Token: "plan-0", RequestedBy: "alice", RequestedByGroups: []string{"dev", "sre"}, Reason: "INC-9"}
			if diff := cmp.Diff(want, b.Spec.Lift); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReleaseIsPausedAndResumed(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, shop(t)...)
	a := newAnswers(t, c)
	for _, step := range []struct {
		verb string
		want v1alpha1.Toggle
	}{{"pause", v1alpha1.Enabled}, {"pause", v1alpha1.Enabled}, {"resume", v1alpha1.Disabled}, {"resume", v1alpha1.Disabled}} {
		want[wire.Release](a, a.send(http.MethodPost, releasesPath+"/shop.web/"+step.verb, ""), http.StatusOK)
		r := &v1alpha1.ABRelease{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, r); err != nil {
			t.Fatal(err)
		}
		if r.Spec.Rollout.Pause != step.want {
			t.Errorf("after %s it is %q", step.verb, r.Spec.Rollout.Pause)
		}
	}
}
