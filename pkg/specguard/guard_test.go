// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

var deployments = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}

func TestCompileRefusesWithThePathOfTheField(t *testing.T) {
	selector := func(op metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: op}}}
	}
	tests := map[string]struct {
		edit       func(*v1alpha1.GuardSpec)
		namespaces *metav1.LabelSelector
		want       []string
	}{
		"a guard that names no kind":     {edit: func(s *v1alpha1.GuardSpec) { s.Resources = nil }, want: []string{"spec.resources"}},
		"an apiVersion with two slashes": {edit: func(s *v1alpha1.GuardSpec) { s.Resources[0].APIVersion = "a/b/c" }, want: []string{"spec.resources[0].apiVersion"}},
		"an empty kind":                  {edit: func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "" }, want: []string{"spec.resources[0].kind"}},
		"Secrets": {edit: func(s *v1alpha1.GuardSpec) {
			s.Resources[0] = v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Secret"}
		}, want: []string{"spec.resources[0].kind"}},
		"an empty selector":                {edit: func(s *v1alpha1.GuardSpec) { s.Selector = &metav1.LabelSelector{} }, want: []string{"spec.selector"}},
		"a selector with a bad operator":   {edit: func(s *v1alpha1.GuardSpec) { s.Selector = selector("Like") }, want: []string{"spec.selector"}},
		"an empty namespace selector":      {namespaces: &metav1.LabelSelector{}, want: []string{"spec.namespaceSelector"}},
		"an ignore path without a slash":   {edit: func(s *v1alpha1.GuardSpec) { s.Ignore = []string{"/spec/a", "spec"} }, want: []string{"spec.ignore[1]"}},
		"an ignore path with a bad escape": {edit: func(s *v1alpha1.GuardSpec) { s.Ignore = []string{"/spec/~x"} }, want: []string{"spec.ignore[0]"}},
		"the whole object as ignore path":  {edit: func(s *v1alpha1.GuardSpec) { s.Ignore = []string{""} }, want: []string{"spec.ignore[0]"}},
		"an expectation with a bad path": {
			edit: func(s *v1alpha1.GuardSpec) {
				s.ExpectedWriters = []v1alpha1.ExpectedWriter{{Name: "a", Paths: []string{"/spec/[name]"}}}
			},
			want: []string{"spec.expectedWriters[0].paths[0]"},
		},
		"an expectation without a name": {
			edit: func(s *v1alpha1.GuardSpec) { s.ExpectedWriters = []v1alpha1.ExpectedWriter{{}} },
			want: []string{"spec.expectedWriters[0].name"},
		},
		"a service account that smuggles a colon": {
			edit: func(s *v1alpha1.GuardSpec) {
				s.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "a", Name: "b:c"}, {Namespace: "a:b", Name: "c"}}
			},
			want: []string{"spec.trustedWriters.serviceAccounts[0].name", "spec.trustedWriters.serviceAccounts[1].namespace"},
		},
		"a user name of a mebibyte": {
			edit: func(s *v1alpha1.GuardSpec) { s.TrustedWriters.Users = []string{strings.Repeat("x", 1<<20)} },
			want: []string{"spec.trustedWriters.users[0]"},
		},
		"an unknown category": {
			edit: func(s *v1alpha1.GuardSpec) {
				s.Categories = []v1alpha1.ResourceCategory{v1alpha1.CategoryStorage, "Everything"}
			},
			want: []string{"spec.categories[1]"},
		},
		"a category alone": {edit: func(s *v1alpha1.GuardSpec) {
			s.Resources, s.Categories = nil, []v1alpha1.ResourceCategory{v1alpha1.CategoryStorage}
		}},
		"an unknown mode":    {edit: func(s *v1alpha1.GuardSpec) { s.Mode = "Block" }, want: []string{"spec.mode"}},
		"an unknown policy":  {edit: func(s *v1alpha1.GuardSpec) { s.ManagementPolicy = "x" }, want: []string{"spec.managementPolicy"}},
		"unknown deletes":    {edit: func(s *v1alpha1.GuardSpec) { s.AuthenticatedDeletes = "x" }, want: []string{"spec.authenticatedDeletes"}},
		"nothing is refused": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{deployments[0]}}
			if tc.edit != nil {
				tc.edit(&spec)
			}
			g, errs := Compile(GuardRef{Name: "g"}, spec, tc.namespaces, testNow)
			var got []string
			for _, err := range errs {
				got = append(got, err.Field)
				if len(err.Error()) > 2000 {
					t.Errorf("a message of %d bytes", len(err.Error()))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if (g == nil) != (len(tc.want) > 0) {
				t.Errorf("guard is %v with errors %v", g, errs)
			}
		})
	}
}

// mustGuard compiles a guard for Deployments.
func mustGuard(t *testing.T, ref GuardRef, edit func(*v1alpha1.GuardSpec)) *Guard {
	t.Helper()
	spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{deployments[0]}}
	if edit != nil {
		edit(&spec)
	}
	g, errs := Compile(ref, spec, nil, testNow)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return g
}

func TestGuardSetSelects(t *testing.T) {
	byLabel := func(s *v1alpha1.GuardSpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	}
	production, errs := Compile(GuardRef{Name: "production"}, v1alpha1.GuardSpec{Resources: deployments},
		&metav1.LabelSelector{MatchLabels: map[string]string{"stage": "production"}}, testNow)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	suspended := mustGuard(t, GuardRef{Namespace: "paused", Name: "own"}, func(s *v1alpha1.GuardSpec) {
		s.Suspend = &v1alpha1.Suspension{Reason: "move", EndTime: metav1.NewTime(testNow.Add(time.Hour))}
	})
	set := NewGuardSet([]*Guard{
		nil, production, suspended, mustGuard(t, GuardRef{Namespace: "shop", Name: "all"}, nil),
		mustGuard(t, GuardRef{Namespace: "labeled", Name: "gold"}, byLabel),
	}, []string{"kube-system"}, System{})
	deployment := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	gold := map[string]string{"tier": "gold"}
	tests := map[string]struct {
		query     Query
		want      []string
		uncertain bool
	}{
		"a SpecGuard in its own namespace":          {query: Query{Namespace: "shop"}, want: []string{"SpecGuard/all"}},
		"never outside of it":                       {query: Query{Namespace: "other"}},
		"a cluster guard by the namespace's labels": {query: Query{Namespace: "p", NamespaceLabels: map[string]string{"stage": "production"}}, want: []string{"ClusterSpecGuard/production"}},
		"both":                             {query: Query{Namespace: "shop", NamespaceLabels: map[string]string{"stage": "production"}}, want: []string{"ClusterSpecGuard/production", "SpecGuard/all"}},
		"nothing in an excluded namespace": {query: Query{Namespace: "kube-system", NamespaceLabels: map[string]string{"stage": "production"}}},
		"another kind":                     {query: Query{Namespace: "shop", GVK: canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}}},
		"another version of the kind":      {query: Query{Namespace: "shop", GVK: canon.GVK{Group: "apps", Version: "v2", Kind: "Deployment"}}, want: []string{"SpecGuard/all"}},
		"by the new labels":                {query: Query{Namespace: "labeled", Labels: []map[string]string{nil, gold}}, want: []string{"SpecGuard/gold"}},
		"by the old labels, which the write takes off": {query: Query{Namespace: "labeled", Labels: []map[string]string{gold, nil}}, want: []string{"SpecGuard/gold"}},
		"by neither":                              {query: Query{Namespace: "labeled", Labels: []map[string]string{nil, {"tier": "tin"}}}},
		"as before, though the labels are gone":   {query: Query{Namespace: "labeled", Kept: &v1alpha1.BaselineStatus{Guards: []string{"SpecGuard/gold"}}}, want: []string{"SpecGuard/gold"}},
		"perhaps, when the labels cannot be seen": {query: Query{Namespace: "labeled", LabelsUnknown: true}, want: []string{"SpecGuard/gold"}, uncertain: true},
		"surely, when labels do not matter":       {query: Query{Namespace: "shop", LabelsUnknown: true}, want: []string{"SpecGuard/all"}},
		"not while it is suspended":               {query: Query{Namespace: "paused", Now: testNow.Add(time.Hour - 1)}},
		"again after the suspension":              {query: Query{Namespace: "paused", Now: testNow.Add(time.Hour)}, want: []string{"SpecGuard/own"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.query.GVK == (canon.GVK{}) {
				tc.query.GVK = deployment
			}
			rules := set.Rules(tc.query)
			got := rules.Guards()
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
			if certain := rules.WithoutUntestedGuards(); rules.Empty() != (len(tc.want) == 0) || certain.Empty() != (len(tc.want) == 0 || tc.uncertain) {
				t.Errorf("Empty %t, certainly %t", rules.Empty(), certain.Empty())
			}
		})
	}
	if next, ok := set.NextExpiry(testNow); !ok || !next.Equal(testNow.Add(time.Hour)) {
		t.Errorf("NextExpiry is %v, %t", next, ok)
	}
	if _, ok := set.NextExpiry(testNow.Add(time.Hour)); ok {
		t.Error("a suspension that is over expires again")
	}
	if diff := cmp.Diff([]canon.GVK{deployment}, set.Resources()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	var none *GuardSet
	if _, ok := none.NextExpiry(testNow); ok || !none.Rules(Query{Namespace: "shop", GVK: deployment}).Empty() || none.Resources() != nil {
		t.Error("a nil GuardSet is not empty")
	}
}

func trust(users ...string) func(*v1alpha1.GuardSpec) {
	return func(s *v1alpha1.GuardSpec) { s.TrustedWriters.Users = users }
}

func rulesOf(t *testing.T, edits ...func(*v1alpha1.GuardSpec)) Rules {
	t.Helper()
	var guards []*Guard
	for i, edit := range edits {
		guards = append(guards, mustGuard(t, GuardRef{Namespace: "shop", Name: string(rune('a' + i))}, edit))
	}
	set := NewGuardSet(guards, nil, System{Executor: testUsers["executor"]})
	return set.Rules(Query{Namespace: "shop", GVK: canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, Now: testNow})
}

func mustPath(t testing.TB, text string) canon.Path {
	t.Helper()
	p, err := canon.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhereGuardsMeetTheStricterHolds(t *testing.T) {
	lax := func(s *v1alpha1.GuardSpec) { s.Ignore = []string{"/spec/paused", "/spec/template"} }
	strict := func(s *v1alpha1.GuardSpec) {
		s.Mode, s.ManagementPolicy = v1alpha1.GuardModeWarn, v1alpha1.Unmanaged
		s.AuthenticatedDeletes = v1alpha1.AuthenticatedDeletesRequired
		s.Ignore = []string{"/spec/template/spec", "/spec/strategy"}
	}
	one, both := rulesOf(t, lax), rulesOf(t, lax, strict)
	if one.Mode() != v1alpha1.GuardModeAudit || one.AuthenticatedDeletes() {
		t.Errorf("one guard: %s %t", one.Mode(), one.AuthenticatedDeletes())
	}
	if both.Mode() != v1alpha1.GuardModeWarn || !both.AuthenticatedDeletes() {
		t.Errorf("two guards: %s %t", both.Mode(), both.AuthenticatedDeletes())
	}
	for path, want := range map[string]bool{
		"/spec/paused":            false, // one of them alone
		"/spec/template/metadata": false,
		"/spec/template/spec/dns": true, // ignored by both, written differently
		"/spec/strategy":          false,
		"/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt": true, // benign
	} {
		if got := both.excludes(mustPath(t, path)); got != want {
			t.Errorf("%s excluded: %t, want %t", path, got, want)
		}
	}
}

func TestWhetherObjectsAreRepairedIsAskedOfAllGuards(t *testing.T) {
	silent := func(*v1alpha1.GuardSpec) {}
	never := func(s *v1alpha1.GuardSpec) {
		s.ManagementPolicy, s.ObjectOverride = v1alpha1.Unmanaged, v1alpha1.ObjectOverrideStop
		s.ResyncPeriod = &metav1.Duration{Duration: time.Hour}
	}
	settings := func(rules Rules, defaults *v1alpha1.GuardDefaults) resync.Settings {
		return resync.Resolve(resync.Hierarchy{Guards: rules.Checks(), InstallWide: defaults})
	}
	unmanaged := &v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{
		Defaults: v1alpha1.CheckDefaults{ManagementPolicy: v1alpha1.Unmanaged},
	}}
	for name, tc := range map[string]struct {
		rules    Rules
		defaults *v1alpha1.GuardDefaults
		want     v1alpha1.ManagementPolicy
		period   time.Duration
	}{
		"nobody says anything":                       {rules: rulesOf(t, silent), want: v1alpha1.Managed},
		"one of two guards says never":               {rules: rulesOf(t, silent, never), want: v1alpha1.Unmanaged, period: time.Hour},
		"the guard says nothing and the defaults do": {rules: rulesOf(t, silent), defaults: unmanaged, want: v1alpha1.Unmanaged},
		"without a guard nothing is repaired":        {want: v1alpha1.Unmanaged},
	} {
		t.Run(name, func(t *testing.T) {
			got := settings(tc.rules, tc.defaults)
			if got.Management.Value != tc.want || got.Period.Value != tc.period {
				t.Errorf("%s every %s, want %s every %s", got.Management.Value, got.Period.Value, tc.want, tc.period)
			}
		})
	}
}

// M5 of the guard's review: a tenant kept the platform from repairing what it guards.
func TestASpecGuardIsSilentAboutRepairsUnderAClusterSpecGuard(t *testing.T) {
	never := func(s *v1alpha1.GuardSpec) {
		s.ManagementPolicy, s.ResyncPeriod = v1alpha1.Unmanaged, &metav1.Duration{}
	}
	hourly := &metav1.Duration{Duration: time.Hour}
	defaults := &v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{Defaults: v1alpha1.CheckDefaults{ResyncPeriod: hourly}}}
	tenant := mustGuard(t, GuardRef{Namespace: "shop", Name: "mine"}, never)
	labeled := mustGuard(t, GuardRef{Name: "platform"}, func(s *v1alpha1.GuardSpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	suspended := *labeled
	suspended.suspendedUntil = testNow.Add(time.Hour)
	gold := map[string]string{"tier": "gold"}
	for name, tc := range map[string]struct {
		guards []*Guard
		labels map[string]string
		want   v1alpha1.ManagementPolicy
		period time.Duration
	}{
		"under a ClusterSpecGuard that says nothing":           {guards: []*Guard{tenant, labeled}, labels: gold, want: v1alpha1.Managed, period: time.Hour},
		"under one that forbids repairs":                       {guards: []*Guard{tenant, mustGuard(t, GuardRef{Name: "platform"}, never)}, want: v1alpha1.Unmanaged},
		"where the ClusterSpecGuard does not select":           {guards: []*Guard{tenant, labeled}, want: v1alpha1.Unmanaged},
		"where the ClusterSpecGuard is suspended":              {guards: []*Guard{tenant, &suspended}, labels: gold, want: v1alpha1.Unmanaged},
		"where there is no ClusterSpecGuard":                   {guards: []*Guard{tenant}, labels: gold, want: v1alpha1.Unmanaged},
		"a ClusterSpecGuard alone is what it was all the time": {guards: []*Guard{labeled}, labels: gold, want: v1alpha1.Managed, period: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			rules := NewGuardSet(tc.guards, nil, System{}).Rules(Query{Namespace: "shop", GVK: deploymentKind, Labels: []map[string]string{tc.labels}, Now: testNow})
			got := resync.Resolve(resync.Hierarchy{Guards: rules.Checks(), InstallWide: defaults})
			if got.Management.Value != tc.want || got.Period.Value != tc.period {
				t.Errorf("%s every %s, want %s every %s", got.Management.Value, got.Period.Value, tc.want, tc.period)
			}
		})
	}
}
