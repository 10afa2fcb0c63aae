// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// TestHidingMore_NeverPasses breaks an installation in several ways and hides
// several reads at once: a report that failed may become undecided, and never
// passes.
func TestHidingMore_NeverPasses(t *testing.T) {
	var ways []string
	flat := map[string]breakage{}
	for id, cases := range breakages() {
		for name, breaks := range cases {
			flat[id+": "+name] = breaks
		}
	}
	ways = slices.Sorted(maps.Keys(flat))
	reads := slices.Sorted(maps.Keys(hidden))
	rapid.Check(t, func(r *rapid.T) {
		s := healthy(t)
		way := rapid.SampledFrom(ways).Draw(r, "way")
		flat[way](t, s)
		full := Examine(s)
		id, _, _ := strings.Cut(way, ": ")
		for _, read := range rapid.SliceOfN(rapid.SampledFrom(reads), 0, 4).Draw(r, "hidden") {
			if exempt[id+"/"+read] == "" { // see TestHidingAFact
				hidden[read](s)
			}
		}
		less := Examine(s)
		for _, failOn := range []Severity{Critical, Warning} {
			before, after := full.Decide(failOn), less.Decide(failOn)
			if before == Failed && after == Passed {
				r.Errorf("failing on %s: %s became %s", failOn, before, after)
			}
		}
	})
}

func TestDecide_CountsWhatCouldHaveBeenFound(t *testing.T) {
	cases := map[string]struct {
		findings []Finding
		failOn   Severity
		want     Decision
	}{
		"nothing":                                  {nil, Warning, Passed},
		"a warning, failing on critical":           {[]Finding{{ID: "details.redis", Severity: Warning}}, Critical, Passed},
		"a warning, failing on warnings":           {[]Finding{{ID: "details.redis", Severity: Warning}}, Warning, Failed},
		"unknown, at worst a warning":              {[]Finding{{ID: "details.redis", Severity: Unknown}}, Critical, Passed},
		"unknown, at worst critical":               {[]Finding{{ID: "policy.deny", Severity: Unknown}}, Critical, Undecided},
		"unknown beside a critical finding":        {[]Finding{{ID: "policy.deny", Severity: Unknown}, {ID: "install.kinds", Severity: Critical}}, Critical, Failed},
		"an odd severity is taken as the stricter": {[]Finding{{ID: "details.redis", Severity: Warning}}, OK, Failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := Report{Findings: tc.findings}
			if got := report.Decide(tc.failOn); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestExamine_SkipsAndSubstitutes(t *testing.T) {
	s := healthy(t)
	s.Namespace = "elsewhere"
	report := Examine(s, "webhook.registration")
	for _, f := range report.Findings {
		if f.ID == "webhook.registration" {
			t.Errorf("the skipped check answered: %s", f.Message)
		}
		if strings.Contains(f.Fix, "plumbline-system") {
			t.Errorf("%s tells to work in another namespace: %s", f.ID, f.Fix)
		}
	}
	if diff := cmp.Diff([]string{"webhook.registration"}, report.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// TestRequest_MatchesAsTheAPIServerDoes is the table of the API's own comments on
// resources, groups and scopes.
func TestRequest_MatchesAsTheAPIServerDoes(t *testing.T) {
	cases := map[string]struct {
		pattern, resource string
		want              bool
	}{
		"the same":                           {"pods", "pods", true},
		"another":                            {"pods", "services", false},
		"every resource":                     {"*", "pods", true},
		"every resource has no subresources": {"*", "pods/log", false},
		"every resource and subresource":     {"*/*", "pods/log", true},
		"every resource and subresource, the object": {"*/*", "pods", true},
		"all of one":                          {"pods/*", "pods/log", true},
		"all of one, the object":              {"pods/*", "pods", true},
		"one subresource everywhere":          {"*/scale", "deployments/scale", true},
		"one subresource everywhere, another": {"*/scale", "deployments/status", false},
		"an object is not its subresource":    {"deployments", "deployments/scale", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request{group: "g", resource: tc.resource, operation: admissionv1.Update}
			if got := r.matches(rule(updates, "g", tc.pattern)); got != tc.want {
				t.Errorf("%s for %s = %v", tc.pattern, tc.resource, got)
			}
			if r.matches(rule([]admissionv1.OperationType{admissionv1.Connect}, "g", tc.pattern)) || r.matches(rule(updates, "other", tc.pattern)) {
				t.Error("another operation or group matches")
			}
			r.clusterScoped = true
			if r.matches(rule(updates, "g", tc.pattern)) {
				t.Error("a rule for namespaced objects matches one of the cluster")
			}
		})
	}
}

// TestSatisfy_MakesLabelsThatAreSelected holds made-up labels against the
// selector itself.
func TestSatisfy_MakesLabelsThatAreSelected(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		value := rapid.SampledFrom([]string{"x", "y"})
		selector := &metav1.LabelSelector{MatchLabels: rapid.MapOfN(key, value, 0, 2).Draw(r, "labels")}
		for range rapid.IntRange(0, 3).Draw(r, "terms") {
			e := metav1.LabelSelectorRequirement{Key: key.Draw(r, "key")}
			e.Operator = rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(r, "operator")
			if e.Operator == "In" || e.Operator == "NotIn" {
				e.Values = []string{value.Draw(r, "value")}
			}
			selector.MatchExpressions = append(selector.MatchExpressions, e)
		}
		labels, ok := satisfy(selector)
		if ok != selects(selector, labels) {
			r.Errorf("%v says %v for %v", selector, ok, labels)
		}
		if len(selector.MatchExpressions) == 0 && !ok {
			r.Errorf("%v cannot be satisfied", selector)
		}
	})
}

func TestParseMetrics_ReadsOurs(t *testing.T) {
	text := `# HELP plumbline_admission_records_written_total Records that Redis took.
# TYPE plumbline_admission_records_written_total counter
plumbline_admission_records_written_total 12
plumbline_admission_records_dropped_total{reason="queue_full"} 1
plumbline_admission_records_dropped_total{reason="redis {or} not"} 2.5
plumbline_certificate_expiry_timestamp_seconds 1.7e+09 1700000000000
plumbline_broken{a="b"
plumbline_empty{}
plumbline_nan x
go_goroutines 7
`
	want := Metrics{"plumbline_admission_records_written_total": 12, "plumbline_admission_records_dropped_total": 3.5, "plumbline_certificate_expiry_timestamp_seconds": 1.7e9}
	if diff := cmp.Diff(want, ParseMetrics(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuildVersion(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"the stamp of a release": {"# TYPE plumbline_build_info gauge\nplumbline_build_info{component=\"webhook\",go_version=\"go1.26.8\",revision=\"abc\",version=\"v0.1.0\"} 1\n", "v0.1.0"},
		"no metric":              {"plumbline_builds 1\nplumbline_build_info 1\n", ""},
		"no version":             {"plumbline_build_info{component=\"webhook\",go_version=\"go1.26.8\"} 1\n", ""},
		"a broken line":          {"plumbline_build_info{component=\"webhook\",version=\"v0", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := BuildVersion(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add("plumbline_a{b=\"c\"} 1\n")
	f.Add("plumbline_a}")
	f.Fuzz(func(t *testing.T, text string) {
		for name := range ParseMetrics(text) {
			if !strings.HasPrefix(name, metricPrefix) {
				t.Errorf("%q", name)
			}
		}
	})
}

func TestBaselines_Add(t *testing.T) {
	var sum Baselines
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: testNow.Add(-time.Duration(minutes) * time.Minute)}
	}
	for i, status := range []v1alpha1.BaselineStatus{
		{State: v1alpha1.StateInSync, LastCheckTime: at(3), NextCheckTime: at(1)},
		{State: v1alpha1.StateInSync, LastCheckTime: at(90), NextCheckTime: at(30)},
		{State: v1alpha1.StateUnknown, LastCheckTime: at(5)},
		{},
		{State: v1alpha1.StateRetired, RetirementTime: at(1)},
		{State: v1alpha1.StateNotGuarded, LastCheckTime: at(900)},
	} {
		b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)}, Status: status}
		sum.Add(b, testNow)
	}
	want := Baselines{Total: 4, Unread: 1, UnreadNames: []string{"shop/2"}, Unchecked: 1, Overdue: 1, OverdueNames: []string{"shop/1"}, OldestCheck: at(90).Time}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLeafLife_IsThatOfOurCertificates: the check measures against the life that
// the webhook's own certificates have.
func TestLeafLife_IsThatOfOurCertificates(t *testing.T) {
	if leafLife != certs.LeafLife {
		t.Errorf("the check counts with %s, certificates live %s", leafLife, certs.LeafLife)
	}
}

// TestPlan_ProbesAreValidObjects checks what an API server would refuse first.
func TestPlan_ProbesAreValidObjects(t *testing.T) {
	for _, kind := range probeKinds {
		plan := Plan{Namespace: "shop", Kind: kind.GroupVersionKind, Labels: map[string]string{"app": "web"}}
		object := plan.Object()
		metadata := object["metadata"].(map[string]any)
		if metadata["labels"].(map[string]string)["app"] != "web" || object["kind"] != kind.Kind || plan.ResourceOf() != kind.resource {
			t.Errorf("%s: %v", kind.Kind, object)
		}
	}
}

// TestPage_DescribesEveryCheck: a check without a section, or a section without
// a check, is a dead link or a lie.
func TestPage_DescribesEveryCheck(t *testing.T) {
	content, err := os.ReadFile("../../" + Page)
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, match := range regexp.MustCompile(`(?m)^### ([a-z]+\.[a-z-]+)$`).FindAllStringSubmatch(string(content), -1) {
		described = append(described, match[1])
	}
	var want []string
	for _, check := range Checks() {
		want = append(want, check.ID)
		section := "### " + check.ID + "\n\n*Worst: " + string(check.Worst) + ".*"
		if !strings.Contains(string(content), section) {
			t.Errorf("the section of %s does not begin with its worst severity, %s", check.ID, check.Worst)
		}
	}
	if diff := cmp.Diff(want, described); diff != "" {
		t.Errorf("%s and the checks differ (-checks +page):\n%s", Page, diff)
	}
}

// TestExamine_IsDeterministic: two looks at one snapshot, its maps and lists in
// another order, give one report.
func TestExamine_IsDeterministic(t *testing.T) {
	s := healthy(t)
	for i, subject := range []string{"zoe", "alice", "mia", "bob"} {
		bind([]string{"", "shop", "", "others"}[i], rights("plumbline.dev", "*", "*"), user(subject))(t, s)
	}
	want := Examine(s)
	random := seed.Random(t)
	for range 20 {
		random.Shuffle(len(s.Roles.Value.Bindings), func(i, j int) {
			b := s.Roles.Value.Bindings
			b[i], b[j] = b[j], b[i]
		})
		if diff := cmp.Diff(want, Examine(s)); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	}
}
