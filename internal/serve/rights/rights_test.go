// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/serve/answers"
)

var (
	errAway = errors.New("the API server is away")
	plans   = schema.GroupResource{Group: "plumbline.dev", Resource: "remediationplans"}
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// apiServer grants rights by name: USER VERB RESOURCE NAMESPACE.
type apiServer struct {
	mu      sync.Mutex
	granted map[string]bool
	away    bool
	asked   []string
}

func named(user, verb, resource, namespace string) string {
	return fmt.Sprintf("%s %s %s %s", user, verb, resource, namespace)
}

func (s *apiServer) Review(_ context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	right := named(spec.User, spec.ResourceAttributes.Verb, spec.ResourceAttributes.Resource, spec.ResourceAttributes.Namespace)
	s.asked = append(s.asked, right)
	if s.away {
		return false, errAway
	}
	return s.granted[right], nil
}

func newRights(s *apiServer) (*Rights, *testingclock.FakePassiveClock) {
	now := testingclock.NewFakePassiveClock(noon)
	return New(s, now, answers.NewMetrics().Of("access")), now
}

func TestARightIsAskedForAllNamespacesFirst(t *testing.T) {
	everywhere, inShop := named("alice", "list", "remediationplans", ""), named("alice", "list", "remediationplans", "shop")
	tests := map[string]struct {
		granted   map[string]bool
		namespace string
		want      bool
		asked     []string
	}{
		"in all":                           {map[string]bool{everywhere: true}, "shop", true, []string{everywhere}},
		"in all, asked for all":            {map[string]bool{everywhere: true}, "", true, []string{everywhere}},
		"in one":                           {map[string]bool{inShop: true}, "shop", true, []string{everywhere, inShop}},
		"in one, asked for all":            {map[string]bool{inShop: true}, "", false, []string{everywhere}},
		"in one, asked for another":        {map[string]bool{inShop: true}, "bank", false, []string{everywhere, named("alice", "list", "remediationplans", "bank")}},
		"in none":                          {nil, "shop", false, []string{everywhere, inShop}},
		"another verb is no right":         {map[string]bool{named("alice", "get", "remediationplans", ""): true}, "shop", false, []string{everywhere, inShop}},
		"the right of another is no right": {map[string]bool{named("bob", "list", "remediationplans", ""): true}, "shop", false, []string{everywhere, inShop}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{granted: tc.granted}
			r, _ := newRights(s)
			for range 2 { // the second answer is remembered
				got, err := r.Allows(t.Context(), &authenticationv1.UserInfo{Username: "alice"}, Right{Verb: "list", Resource: plans, Namespace: tc.namespace})
				if got != tc.want || err != nil {
					t.Errorf("got %t, %v", got, err)
				}
			}
			if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASubresourceAndANameAreAskedFor(t *testing.T) {
	var got []authorizationv1.ResourceAttributes
	r := New(reviewing(func(spec *authorizationv1.SubjectAccessReviewSpec) { got = append(got, *spec.ResourceAttributes) }), testingclock.NewFakePassiveClock(noon), answers.NewMetrics().Of("access"))
	right := Right{Verb: "get", Resource: schema.GroupResource{Resource: "pods/proxy"}, Namespace: "plumbline-system", Name: "executor-0:8081"}
	other := right
	other.Name = "executor-1:8081"
	for _, asked := range []Right{right, right, other} {
		if _, err := r.Allows(t.Context(), &authenticationv1.UserInfo{Username: "alice"}, asked); err != nil {
			t.Fatal(err)
		}
	}
	everywhere := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "proxy", Name: "executor-0:8081"}
	inOne, ofOther := everywhere, everywhere
	inOne.Namespace, ofOther.Name = "plumbline-system", "executor-1:8081"
	ofOtherInOne := ofOther
	ofOtherInOne.Namespace = "plumbline-system"
	if diff := cmp.Diff([]authorizationv1.ResourceAttributes{everywhere, inOne, ofOther, ofOtherInOne}, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// reviewing grants no right.
type reviewing func(*authorizationv1.SubjectAccessReviewSpec)

func (f reviewing) Review(_ context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	f(spec)
	return false, nil
}

func TestARightThatWasTakenAwayEndsAfterTenSeconds(t *testing.T) {
	s := &apiServer{granted: map[string]bool{named("alice", "list", "remediationplans", "shop"): true}}
	r, now := newRights(s)
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {lasts - 1, true}, {lasts, false}} {
		now.SetTime(noon.Add(step.after))
		if got, err := r.Allows(t.Context(), &authenticationv1.UserInfo{Username: "alice"}, Right{Verb: "list", Resource: plans, Namespace: "shop"}); got != step.want || err != nil {
			t.Errorf("after %s: %t, %v", step.after, got, err)
		}
		s.granted = nil
	}
}

func TestAnAnswerIsOfOneIdentityAlone(t *testing.T) {
	identities := []authenticationv1.UserInfo{
		{Username: "alice"}, {Username: "alice", UID: "1"}, {Username: "alice", Groups: []string{"sre"}}, {Username: "alice", Groups: []string{"sre", "dev"}},
		{Username: "alice", Groups: []string{"sre,dev"}}, {Username: "alice", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}}},
		{Username: "alice", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"b"}}}, {Username: "alicesre"},
	}
	s := &apiServer{}
	r, _ := newRights(s)
	for range 2 {
		for i := range identities {
			if _, err := r.Allows(t.Context(), &identities[i], Right{Verb: "list", Resource: plans}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(s.asked) != len(identities) {
		t.Errorf("the API server was asked %d times for %d identities", len(s.asked), len(identities))
	}
}

func TestARightThatCannotBeAskedForIsNotGranted(t *testing.T) {
	s := &apiServer{away: true}
	r, _ := newRights(s)
	user := &authenticationv1.UserInfo{Username: "alice"}
	if got, err := r.Allows(t.Context(), user, Right{Verb: "list", Resource: plans, Namespace: "shop"}); got || !errors.Is(err, errAway) {
		t.Errorf("got %t, %v", got, err)
	}
	if got, err := r.FilterNamespaces(t.Context(), user, Right{Verb: "list", Resource: plans}, []string{"shop", "bank"}); got != nil || !errors.Is(err, errAway) {
		t.Errorf("got %v, %v", got, err)
	}
}

// The namespaces that a user may read are those that the API server grants, whatever was asked before.
func TestTheNamespacesOfAUserAreThoseThatAreGranted(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		s := &apiServer{granted: map[string]bool{}}
		r, now := newRights(s)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			user := rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "user")
			asked := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "namespaces")
			toggled := named(user, "list", "remediationplans", rapid.SampledFrom(all).Draw(t, "toggled"))
			s.granted[toggled] = !s.granted[toggled]
			now.SetTime(now.Now().Add(lasts)) // nothing that was asked before counts
			got, err := r.FilterNamespaces(context.Background(), &authenticationv1.UserInfo{Username: user}, Right{Verb: "list", Resource: plans}, asked)
			if err != nil {
				t.Fatal(err)
			}
			for _, namespace := range all {
				if want := slices.Contains(asked, namespace) && s.granted[named(user, "list", "remediationplans", namespace)]; got[namespace] != want {
					t.Fatalf("%s in %s: %t", user, namespace, got[namespace])
				}
			}
		}
	})
}

func TestADenialIsStrongerThanAGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		want   bool
	}{
		"allowed":            {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, true},
		"denied":             {authorizationv1.SubjectAccessReviewStatus{Denied: true}, nil, false},
		"allowed and denied": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, false},
		"no opinion":         {authorizationv1.SubjectAccessReviewStatus{}, nil, false},
		"away":               {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, errAway, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var asked *authorizationv1.SubjectAccessReview
			client.PrependReactor("create", "subjectaccessreviews", func(action clientgotesting.Action) (bool, runtime.Object, error) {
				asked = action.(clientgotesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // the reactor gets no others
				return true, &authorizationv1.SubjectAccessReview{Status: tc.status}, tc.err
			})
			r := New(NewReviewer(client.AuthorizationV1().SubjectAccessReviews()), testingclock.NewFakePassiveClock(noon), answers.NewMetrics().Of("access"))
			user := &authenticationv1.UserInfo{Username: "alice", UID: "1", Groups: []string{"sre"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}}}
			got, err := r.Allows(t.Context(), user, Right{Verb: "list", Resource: plans})
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v", got, err)
			}
			want := authorizationv1.SubjectAccessReviewSpec{
				User: "alice", UID: "1", Groups: []string{"sre"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a"}},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "plumbline.dev", Resource: "remediationplans"},
			}
			if diff := cmp.Diff(want, asked.Spec); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}
