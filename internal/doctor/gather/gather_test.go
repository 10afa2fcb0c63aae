// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/doctor"
)

var testNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

func TestResult_TellsAbsentFromUnknown(t *testing.T) {
	cases := map[string]struct {
		err  error
		want doctor.Read[int]
	}{
		"read":                    {nil, doctor.Got(7)},
		"the object is not there": {apierrors.NewNotFound(deployments, "web"), doctor.Gone[int]()},
		"the kind is not served":  {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Widget"}}, doctor.Gone[int]()},
		"no right": {apierrors.NewForbidden(deployments, "web", errors.New("no")),
			doctor.Read[int]{Right: "get deployments", Reason: `deployments.apps "web" is forbidden: no`}},
		"the server is in trouble": {apierrors.NewInternalError(errors.New("boom")), doctor.Read[int]{Reason: "Internal error occurred: boom"}},
		"a path that is not known": {apierrors.NewGenericServerResponse(404, "get", deployments, "", "", 0, true),
			doctor.Read[int]{Reason: "the server could not find the requested resource (get deployments.apps)"}},
		"no server": {fmt.Errorf("asking: %w", errors.New("refused")), doctor.Read[int]{Reason: "asking: refused"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := result(7, "get deployments", tc.err)
			if got.State != doctor.ReadValue {
				got.Value = 0 // worth nothing
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusal_TellsWhoSaidNo(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/shop/deployments"
	denied := apierrors.NewForbidden(deployments, "web", errors.New("ValidatingAdmissionPolicy 'plumbline-deny' with binding 'plumbline-deny' denied request: no"))
	rbac := apierrors.NewForbidden(deployments, "", errors.New(`User "alice" cannot create resource "deployments" in API group "apps" in the namespace "shop"`))
	quota := apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota"))
	cases := map[string]struct {
		err  error
		want doctor.Read[doctor.Outcome]
	}{
		"a policy": {denied, doctor.Got(doctor.Outcome{Refused: true, By: "plumbline-deny", Message: denied.Error()})},
		"a quota":  {quota, doctor.Got(doctor.Outcome{Refused: true, Message: quota.Error()})},
		"RBAC":     {rbac, doctor.Read[doctor.Outcome]{Right: "create deployments.apps in namespace shop", Reason: rbac.Error()}},
		"RBAC, of a patch": {apierrors.NewForbidden(deployments, "web", errors.New(`User "alice" cannot patch resource "deployments"`)),
			doctor.Read[doctor.Outcome]{Right: "patch deployments.apps in namespace shop", Reason: `deployments.apps "web" is forbidden: User "alice" cannot patch resource "deployments"`}},
		"a kind that is gone": {apierrors.NewGenericServerResponse(404, "post", deployments, "", "", 0, true), doctor.Gone[doctor.Outcome]()},
		"a namespace that is gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"),
			doctor.Got(doctor.Outcome{Refused: true, Message: `namespaces "shop" not found`})},
		"trouble":   {apierrors.NewTimeoutError("slow", 1), doctor.Read[doctor.Outcome]{Reason: "Timeout: slow"}},
		"no server": {errors.New("refused"), doctor.Read[doctor.Outcome]{Reason: "refused"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusal(tc.err, path)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseVersion_ReadsWhatManagedClustersWrite(t *testing.T) {
	got := parseVersion(&version.Info{GitVersion: "v1.33.4-eks-1", Major: "1", Minor: "33+"})
	if diff := cmp.Diff(doctor.ServerVersion{GitVersion: "v1.33.4-eks-1", Major: 1, Minor: 33}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRestricts_LooksPastDefaults(t *testing.T) {
	equivalent := admissionv1.Equivalent
	cases := map[string]struct {
		match *admissionv1.MatchResources
		want  bool
	}{
		"none":         {nil, false},
		"as defaulted": {&admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: &equivalent}, false},
		"by label":     {&admissionv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, true},
		"by namespace": {&admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists"}}}}, true},
		"by resource":  {&admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{}}}, true},
		"by exclusion": {&admissionv1.MatchResources{ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{{}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := restricts(tc.match); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestSnapshot_OfAServerThatRefusesEverything: discovery answers, all else is
// forbidden. Nothing of it may look read.
func TestSnapshot_OfAServerThatRefusesEverything(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := any(apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("cannot create resource")).Status())
		code := http.StatusForbidden
		switch {
		case r.URL.Path == "/version":
			answer, code = version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, http.StatusOK
		case r.URL.Path == "/api" || r.URL.Path == "/apis":
			answer, code = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}, http.StatusOK
		case strings.Contains(r.URL.Path, "/pods/"):
			t.Errorf("a pod was asked that nobody named: %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	s, err := Snapshot(t.Context(), &rest.Config{Host: server.URL}, Options{Namespace: "plumbline-system", Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	if s.Server.State != doctor.ReadValue || s.Server.Value.Minor != 36 || s.Now != testNow {
		t.Errorf("server %+v, now %s", s.Server, s.Now)
	}
	for _, f := range doctor.Examine(s).Findings {
		if f.Severity == doctor.OK && f.ID != "install.apiserver" {
			t.Errorf("%s is OK: %s", f.ID, f.Message)
		}
	}
	report := doctor.Examine(s)
	if got := report.Decide(doctor.Critical); got == doctor.Passed {
		t.Errorf("the decision is %s", got)
	}
}

func TestSnapshot_OfNoServerIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if _, err := Snapshot(t.Context(), &rest.Config{Host: server.URL}, Options{Now: func() time.Time { return testNow }}); err == nil {
		t.Error("a server that does not listen was read")
	}
}

func TestPreferred_IsTheNewestVersion(t *testing.T) {
	served := func(version string) doctor.Resource {
		return doctor.Resource{Group: "helm.toolkit.fluxcd.io", Version: version, Name: "helmreleases", Kind: "HelmRelease"}
	}
	r := &reader{snapshot: &doctor.Snapshot{Resources: doctor.Got([]doctor.Resource{
		served("v2beta2"), served("v2"), served("v2beta10"), {Group: "other", Version: "v9", Name: "helmreleases", Kind: "Other"},
	})}}
	want := schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
	if got := r.preferred("helm.toolkit.fluxcd.io", "helmreleases"); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := r.preferred("helm.toolkit.fluxcd.io", "kustomizations"); !got.Empty() {
		t.Errorf("got %v for what is not served", got)
	}
}
