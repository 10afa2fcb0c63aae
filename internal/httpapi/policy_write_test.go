// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	policiesPath = remediationPath + "/policies"
	policyPath   = policiesPath + "/" + examplePolicy
)

// policy reads a policy of a cluster.
func policy(t *testing.T, c *inMemory, name string) *v1alpha1.RemediationPolicy {
	t.Helper()
	p := &v1alpha1.RemediationPolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPolicyIsCreatedInTheNameOfTheCaller(t *testing.T) {
	tests := map[string]struct {
		body   string
		by     string
		groups []string
	}{
		"a policy that observes":             {policyBody("nightly"), "alice", nil},
		"a policy that acts":                 {acting(`"mode":"active"`), "alice", []string{"sre", "dev"}},
		"a policy that names its groups":     {acting(`"mode":"active","requestedByGroups":["sre"]`), "alice", []string{"sre"}},
		"a policy that names another author": {acting(`"mode":"active","requestedBy":"bob","requestedByGroups":["sre"]`), "alice", []string{"sre"}},
		"a policy of a service account":      {acting(`"mode":"active","serviceAccountName":"ops/fixer"`), "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, shop(t)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, policiesPath, tc.body)
			created := want[wire.Policy](a, w, http.StatusCreated)
			if got := w.Header().Get("Location"); got != policiesPath+"/nightly" || created.Name != "nightly" {
				t.Errorf("%q is at %q", created.Name, got)
			}
			stored := policy(t, c, "nightly").Spec
			if diff := cmp.Diff(tc.groups, stored.RequestedByGroups); stored.RequestedBy != tc.by || diff != "" {
				t.Errorf("it is by %q, (-want +got):\n%s", stored.RequestedBy, diff)
			}
			if stored.Trigger != v1alpha1.TriggerAgeThreshold || stored.Safety.MaxPerHour != 10 || stored.EnvironmentName != "production" {
				t.Errorf("stored is %+v", stored)
			}
		})
	}
}

// acting is the body of the policy nightly with fields added.
func acting(fields string) string {
	return strings.Replace(policyBody("nightly"), "{", "{"+fields+",", 1)
}

func TestARepeatWithTheSameKeyFindsWhatTheFirstMade(t *testing.T) {
	nameless := strings.Replace(policyBody("nightly"), `"name":"nightly"`, `"name":"weekly"`, 1)
	tests := map[string]struct {
		user, key, body string
		status          int
		problem         wire.ProblemType
		location        string
	}{
		"the same request":               {"alice", "k", policyBody("nightly"), http.StatusCreated, "", ""},
		"another spelling of it":         {"alice", "k", strings.ReplaceAll(policyBody("nightly"), `,"`, `, "`), http.StatusCreated, "", ""},
		"another body with this name":    {"alice", "k", acting(`"maxTargets":3`), 0, wire.Invalid, "header.Idempotency-Key"},
		"another body with another name": {"alice", "k", nameless, 0, wire.Invalid, "header.Idempotency-Key"},
		"another key":                    {"alice", "l", policyBody("nightly"), 0, wire.Refused, ""},
		"the key of another user":        {"bob", "k", policyBody("nightly"), 0, wire.Refused, ""},
		"no key":                         {"alice", "", policyBody("nightly"), 0, wire.Refused, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, shop(t)...)
			a := newAnswers(t, c)
			first := want[wire.Policy](a, a.send(http.MethodPost, policiesPath, policyBody("nightly"), "Idempotency-Key", "k"), http.StatusCreated)
			c.user = authenticationv1.UserInfo{Username: tc.user, Groups: []string{"sre"}}
			w := newAnswers(t, c).send(http.MethodPost, policiesPath, tc.body, "Idempotency-Key", tc.key)
			if tc.status == 0 {
				a.wantProblem(w, tc.problem, tc.location)
				return
			}
			if diff := cmp.Diff(first, want[wire.Policy](a, w, tc.status)); diff != "" {
				t.Errorf("(-first +repeat):\n%s", diff)
			}
		})
	}
}

func TestAPolicyIsReplacedIfItIsTheOneThatWasSeen(t *testing.T) {
	tests := map[string]struct {
		tag     string
		problem wire.ProblemType // empty: it is replaced
	}{
		"the version that is there":  {examplePolicyTag, ""},
		"one of several":             {`"other", ` + examplePolicyTag, ""},
		"any version":                {"*", ""},
		"no version":                 {"", wire.PreconditionRequired},
		"an earlier version":         {`"7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001.3"`, wire.PreconditionFailed},
		"a version of another":       {`"e0000000-0000-4000-8000-000000000001.4"`, wire.PreconditionFailed},
		"a weak tag of the version":  {"W/" + examplePolicyTag, wire.PreconditionFailed},
		"a tag without quotes":       {strings.Trim(examplePolicyTag, `"`), wire.PreconditionFailed},
		"the beginning of the tag":   {`"7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001."`, wire.PreconditionFailed},
		"a list without the version": {`"a", "b"`, wire.PreconditionFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodPut, http.MethodDelete} {
				c := newCluster(t, interceptor.Funcs{}, shop(t)...)
				a := newAnswers(t, c)
				w := a.send(method, policyPath, policyBody(examplePolicy), ifMatch, tc.tag)
				err := c.Get(t.Context(), client.ObjectKey{Name: examplePolicy}, &v1alpha1.RemediationPolicy{})
				if tc.problem != "" {
					a.wantProblem(w, tc.problem, "")
				}
				if isGone := apierrors.IsNotFound(err); isGone != (method == http.MethodDelete && tc.problem == "") {
					t.Errorf("%s: %d: the policy is gone: %t", method, w.Code, isGone)
				}
				if method == http.MethodPut && tc.problem == "" {
					replaced := want[wire.Policy](a, w, http.StatusOK)
					if p := policy(t, c, examplePolicy); replaced.Mode != "" || p.Spec.Mode != "" || p.Spec.RequestedBy != "alice" || p.Spec.Selector != nil {
						t.Errorf("stored is %+v", p.Spec)
					}
				}
			}
		})
	}
}

// The reader need not be the author: what asks for no change gives the policy no other author.
func TestAPolicyThatIsReadAndWrittenBackIsNotWritten(t *testing.T) {
	c := newCluster(t, refusingWrites(t), shop(t)...)
	c.user.Username = "bob"
	a := newAnswers(t, c)
	read := a.get(policyPath)
	w := a.send(http.MethodPut, policyPath, read.Body.String(), ifMatch, read.Header().Get("ETag"))
	if w.Code != http.StatusOK || w.Header().Get("ETag") != read.Header().Get("ETag") || w.Body.String() != read.Body.String() {
		t.Errorf("%d %s: %s", w.Code, w.Header().Get("ETag"), w.Body)
	}
}

// The assessor writes the status of a policy at any time.
func TestAWriteOfTheStatusComesBetween(t *testing.T) {
	for name, tc := range map[string]struct {
		generation int64
		problem    wire.ProblemType
	}{
		"a write of the status": {4, ""}, "a write of the spec": {5, wire.PreconditionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodPut, http.MethodDelete} {
				came := false
				between := func(ctx context.Context, c client.WithWatch) {
					if came {
						return
					}
					came = true
					p := &v1alpha1.RemediationPolicy{}
					if err := c.Get(ctx, client.ObjectKey{Name: examplePolicy}, p); err != nil {
						t.Fatal(err)
					}
					p.Labels, p.Generation = map[string]string{"by": "another"}, tc.generation
					if err := c.Update(ctx, p); err != nil {
						t.Fatal(err)
					}
				}
				c := newCluster(t, interceptor.Funcs{
					Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
						between(ctx, c)
						return c.Update(ctx, o, opts...)
					},
					Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
						between(ctx, c)
						if wanted := (&client.DeleteOptions{}).ApplyOptions(opts); wanted.Preconditions == nil || *wanted.Preconditions.ResourceVersion == "999" {
							return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has changed"))
						}
						return c.Delete(ctx, o)
					},
				}, shop(t)...)
				a := newAnswers(t, c)
				w := a.send(method, policyPath, policyBody(examplePolicy), ifMatch, examplePolicyTag)
				if tc.problem != "" {
					a.wantProblem(w, tc.problem, "")
				} else if w.Code >= 300 {
					t.Errorf("%s: %d %s", method, w.Code, w.Body)
				}
			}
		})
	}
}

func TestAPolicyActsWithTheRightsOfTheCaller(t *testing.T) {
	tests := map[string]struct {
		verb, body, mode string
		by               string
		groups           []string
		reason           string
	}{
		"all groups":              {"activate", ``, "Active", "alice", []string{"sre", "dev"}, ""},
		"some groups":             {"activate", `{"groups":["dev"],"reason":"INC-9"}`, "Active", "alice", []string{"dev"}, "INC-9"},
		"no groups":               {"activate", `{"groups":[]}`, "Active", "alice", nil, ""},
		"a policy that ends":      {"deactivate", `{"reason":"done"}`, "ObserveOnly", "alice", nil, "done"},
		"a policy that is halted": {"halt", `{"reason":"INC-9"}`, "Halted", "alice", nil, "INC-9"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, shop(t)...)
			a := newAnswers(t, c)
			want[wire.Policy](a, a.send(http.MethodPost, policyPath+"/"+tc.verb, tc.body), http.StatusOK)
			p := policy(t, c, examplePolicy)
			if diff := cmp.Diff(tc.groups, p.Spec.RequestedByGroups); string(p.Spec.Mode) != tc.mode || p.Spec.RequestedBy != tc.by || diff != "" {
				t.Errorf("%s by %s, groups (-want +got):\n%s", p.Spec.Mode, p.Spec.RequestedBy, diff)
			}
			if got := p.Annotations[v1alpha1.AnnotationModeReason]; got != tc.reason {
				t.Errorf("the reason is %q", got)
			}
			again := want[wire.Policy](a, a.send(http.MethodPost, policyPath+"/"+tc.verb, tc.body), http.StatusOK)
			if now := policy(t, c, examplePolicy); now.ResourceVersion != p.ResourceVersion || again.Name != p.Name {
				t.Error("a policy that is in the mode is written")
			}
		})
	}
}

// The chart's policies and the schema speak of fields of the kind. A caller knows the fields of the API.
func TestAFieldThatTheAPIServerRefusesIsNamedInTheSpellingOfTheCaller(t *testing.T) {
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("RemediationPolicy").GroupKind(), "nightly", field.ErrorList{
		field.Invalid(field.NewPath("spec", "safety", "maxPerHour"), 10, "must be at most 5"),
		field.Required(field.NewPath("spec", "notifications", "channels").Index(0).Child("destination"), "name the Secret"),
		field.Invalid(field.NewPath("spec"), nil, "an age_threshold needs minimumDriftAge"),
	})
	a := newAnswers(t, newCluster(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return invalid }}, shop(t)...))
	for target, prefix := range map[string]string{policiesPath: "body", remediationPath + "/preview": "body.policy"} {
		body := policyBody("nightly")
		if prefix == "body.policy" {
			body = `{"policy":` + body + `}`
		}
		p := a.wantProblem(a.send(http.MethodPost, target, body), wire.Invalid, "")
		var got []string
		for _, e := range p.Errors {
			got = append(got, e.Location)
		}
		if diff := cmp.Diff([]string{prefix + ".maxRemediationsPerHour", prefix + ".notifications.channels[0].destination", prefix}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

func TestARefusalOfTheAPIServerSaysWhichRightOrWhichPolicy(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "remediationpolicies"}
	denied := apierrors.NewForbidden(resource, examplePolicy, errors.New("ValidatingAdmissionPolicy 'plumbline-policy-writers' denied request: of another"))
	denied.ErrStatus.Details.Causes = append(denied.ErrStatus.Details.Causes, causeOf("spec.requestedByGroups must be groups of the authenticated user"))
	tests := map[string]struct {
		err  error
		want wire.Problem
	}{
		"a right that is missing": {
			apierrors.NewForbidden(resource, examplePolicy, errors.New(`User "alice" cannot patch resource "remediationpolicies" in API group "plumbline.dev" at the cluster scope`)),
			wire.Problem{Type: "forbidden", Status: 403, Detail: "you may not patch RemediationPolicy in the whole cluster", Right: &wire.MissingRight{Verb: "patch", Kind: "RemediationPolicy"}},
		},
		"a policy of the chart":      {denied, wire.Problem{Type: "forbidden", Status: 403, Detail: "spec.requestedByGroups must be groups of the authenticated user"}},
		"a quota":                    {apierrors.NewForbidden(resource, examplePolicy, errors.New("exceeded quota")), wire.Problem{Type: "forbidden", Status: 403, Detail: `remediationpolicies.plumbline.dev "production-auto-remediation" is forbidden: exceeded quota`}},
		"an API server that waits":   {apierrors.NewTooManyRequests("later", 7), wire.Problem{Type: "too-many-requests", Status: 429, Detail: "the API server asks to wait"}},
		"a policy that is gone":      {apierrors.NewNotFound(resource, examplePolicy), wire.Problem{Type: "not-found", Status: 404, Detail: "no RemediationPolicy has this id or name, or you may not read it"}},
		"an object that is too much": {apierrors.NewRequestEntityTooLargeError("etcd"), wire.Problem{Type: "too-large", Status: 413, Detail: "the API server takes no object of this size"}},
		"an error of ours":           {errors.New("a secret detail"), wire.Problem{Type: "internal", Status: 500, Detail: "the log of Plumbline says more"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return tc.err
			}}, shop(t)...)
			a := newAnswers(t, c)
			w := a.send(http.MethodPost, policyPath+"/deactivate", "")
			var got wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			got.Type, got.Title = strings.TrimPrefix(got.Type, wire.ProblemBase), ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if wait := w.Header().Get("Retry-After"); (wait == "7") != (w.Code == http.StatusTooManyRequests) {
				t.Errorf("Retry-After is %q", wait)
			}
		})
	}
}

func TestADryRunStoresNoPolicy(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, shop(t)...)
	a, before := newAnswers(t, c), policy(t, c, examplePolicy).Spec
	shown := want[wire.Policy](a, a.send(http.MethodPut, policyPath+"?dryRun=true", policyBody(examplePolicy), ifMatch, examplePolicyTag), http.StatusOK)
	if shown.RequestedBy != "alice" {
		t.Errorf("the policy would be by %q", shown.RequestedBy)
	}
	if diff := cmp.Diff(before, policy(t, c, examplePolicy).Spec); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	a.wantProblem(a.send(http.MethodPut, policyPath+"?dryRun=true", policyBody(examplePolicy), ifMatch, `"x.1"`), wire.PreconditionFailed, "")
}

func TestAPolicyThatHasChangedIsNotActivated(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, shop(t)...)
	a, before := newAnswers(t, c), policy(t, c, examplePolicy).Spec
	a.wantProblem(a.send(http.MethodPost, policyPath+"/activate", `{"groups":[]}`, ifMatch, `"x.1"`), wire.PreconditionFailed, "")
	if diff := cmp.Diff(before, policy(t, c, examplePolicy).Spec); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	want[wire.Policy](a, a.send(http.MethodPost, policyPath+"/activate", `{"groups":[]}`, ifMatch, examplePolicyTag), http.StatusOK)
	if got := policy(t, c, examplePolicy).Spec; len(got.RequestedByGroups) != 0 || got.RequestedBy != "alice" {
		t.Errorf("stored %+v", got)
	}
}
