// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// exception is one that is made now and ends in an hour.
func exception(name string, changes ...func(*v1alpha1.SpecGuardException)) *v1alpha1.SpecGuardException {
	e := &v1alpha1.SpecGuardException{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(testNow)}}
	e.Spec.Resources, e.Spec.Paths = []v1alpha1.GuardedResource{deployments[0]}, []string{"/spec/replicas"}
	e.Spec.EndTime, e.Spec.Ticket, e.Spec.RequestedBy = metav1.NewTime(testNow.Add(time.Hour)), "OPS-1", "olga"
	for _, change := range changes {
		change(e)
	}
	return e
}

// playExcept makes an exception for the paths of its input, which ends after the duration of its
// argument for; by names its only writer.
func playExcept(w *world, d *datadriven.TestData) {
	lasts, err := time.ParseDuration(arg(d, "for", "1h"))
	if err != nil {
		d.Fatalf(w.t.(*testing.T), "except: %v", err)
	}
	made, errs := CompileException(exception(arg(d, "name", "hotfix"), func(e *v1alpha1.SpecGuardException) {
		e.CreationTimestamp, e.Spec.EndTime = metav1.NewTime(w.now), metav1.NewTime(w.now.Add(lasts))
		e.Spec.Paths = strings.Fields(d.Input)
		if by := arg(d, "by", ""); by != "" {
			e.Spec.Writers = &v1alpha1.Writers{Users: []string{user(by)}}
		}
	}))
	if len(errs) > 0 {
		d.Fatalf(w.t.(*testing.T), "except: %v", errs.ToAggregate())
	}
	w.exempt = append(w.exempt, made)
	w.rule()
	w.observe(false, false)
}

func TestAnExceptionIsRefusedWithThePathOfTheField(t *testing.T) {
	end := func(after time.Duration) func(*v1alpha1.SpecGuardException) {
		return func(e *v1alpha1.SpecGuardException) { e.Spec.EndTime = metav1.NewTime(testNow.Add(after)) }
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.SpecGuardException)
		want   []string
	}{
		"nothing is refused": {func(*v1alpha1.SpecGuardException) {}, nil},
		"ninety days":        {end(MaxExceptionTime), nil},
		"a second more":      {end(MaxExceptionTime + time.Second), []string{"spec.endTime"}},
		"an end in 1970":     {func(e *v1alpha1.SpecGuardException) { e.Spec.EndTime = metav1.Unix(0, 0) }, nil},
		"an end in 2400":     {func(e *v1alpha1.SpecGuardException) { e.Spec.EndTime = metav1.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC) }, []string{"spec.endTime"}},
		"no end":             {func(e *v1alpha1.SpecGuardException) { e.Spec.EndTime = metav1.Time{} }, []string{"spec.endTime"}},
		"no kind":            {func(e *v1alpha1.SpecGuardException) { e.Spec.Resources = nil }, []string{"spec.resources"}},
		"Secrets": {func(e *v1alpha1.SpecGuardException) {
			e.Spec.Resources[0] = v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Secret"}
		}, []string{"spec.resources[0].kind"}},
		"an unknown category":   {func(e *v1alpha1.SpecGuardException) { e.Spec.Categories = []v1alpha1.ResourceCategory{"All"} }, []string{"spec.categories[0]"}},
		"no path":               {func(e *v1alpha1.SpecGuardException) { e.Spec.Paths = nil }, []string{"spec.paths"}},
		"the whole object":      {func(e *v1alpha1.SpecGuardException) { e.Spec.Paths = []string{""} }, []string{"spec.paths[0]"}},
		"a writer without name": {func(e *v1alpha1.SpecGuardException) { e.Spec.Writers = &v1alpha1.Writers{Users: []string{""}} }, []string{"spec.writers.users[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			made, errs := CompileException(exception("hotfix", test.change))
			var got []string
			for _, err := range errs {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || (made == nil) != (len(test.want) > 0) {
				t.Errorf("compiled: %v (-want +got):\n%s", made != nil, diff)
			}
		})
	}
}

func TestAnExceptionExcusesItsWritersAtItsPathsUntilItsEnd(t *testing.T) {
	everyone := func(*v1alpha1.SpecGuardException) {}
	olga := func(e *v1alpha1.SpecGuardException) { e.Spec.Writers = &v1alpha1.Writers{Users: []string{"olga"}} }
	replicas := mustPath(t, "/spec/replicas")
	for name, test := range map[string]struct {
		change  func(*v1alpha1.SpecGuardException)
		query   func(*Query)
		user    string
		path    canon.Path
		excused bool
	}{
		"each writer":               {change: everyone, user: "mallory", path: replicas, excused: true},
		"a writer without a name":   {change: everyone, user: "", path: replicas},
		"the writer it names":       {change: olga, user: "olga", path: replicas, excused: true},
		"another writer":            {change: olga, user: "mallory", path: replicas},
		"another path":              {change: everyone, user: "mallory", path: mustPath(t, "/spec/paused")},
		"the whole object":          {change: everyone, user: "mallory", path: canon.Path{}},
		"a moment before its end":   {change: everyone, user: "mallory", path: replicas, query: func(q *Query) { q.Now = testNow.Add(time.Hour - 1) }, excused: true},
		"at its end":                {change: everyone, user: "mallory", path: replicas, query: func(q *Query) { q.Now = testNow.Add(time.Hour) }},
		"an object of another name": {change: func(e *v1alpha1.SpecGuardException) { e.Spec.Names = []string{"cart"} }, user: "mallory", path: replicas},
		"an object that it names":   {change: func(e *v1alpha1.SpecGuardException) { e.Spec.Names = []string{"cart", "web"} }, user: "mallory", path: replicas, excused: true},
		"an object of unknown name": {change: func(e *v1alpha1.SpecGuardException) { e.Spec.Names = []string{"web"} }, query: func(q *Query) { q.Name = "" }, user: "mallory", path: replicas},
		"a kind of its category": {change: func(e *v1alpha1.SpecGuardException) {
			e.Spec.Resources, e.Spec.Categories = nil, []v1alpha1.ResourceCategory{v1alpha1.CategoryWorkloads}
		}, user: "mallory", path: replicas, excused: true},
		"another kind":               {change: func(e *v1alpha1.SpecGuardException) { e.Spec.Resources[0].Kind = "StatefulSet" }, user: "mallory", path: replicas},
		"an exception of a neighbor": {change: func(e *v1alpha1.SpecGuardException) { e.Namespace = "other" }, user: "mallory", path: replicas},
	} {
		t.Run(name, func(t *testing.T) {
			made, errs := CompileException(exception("hotfix", test.change))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			tenants, errs := Compile(GuardRef{Namespace: "shop", Name: "tenants"}, v1alpha1.GuardSpec{Resources: deployments}, nil, testNow)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			platforms, errs := Compile(GuardRef{Name: "platforms"}, v1alpha1.GuardSpec{Resources: deployments}, nil, testNow)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			query := Query{Namespace: "shop", Name: "web", GVK: canon.ParseGVK("apps/v1", "Deployment"), Now: testNow}
			if test.query != nil {
				test.query(&query)
			}
			for guards, takes := range map[string]struct {
				list []*Guard
				does bool
			}{
				"a SpecGuard":                            {[]*Guard{tenants}, true},
				"a ClusterSpecGuard":                     {[]*Guard{platforms}, false},
				"a ClusterSpecGuard that forbids":        {[]*Guard{platforms.WithTenantExceptions(v1alpha1.GuardExceptionsForbidden)}, false},
				"a ClusterSpecGuard of an unknown value": {[]*Guard{platforms.WithTenantExceptions("Sometimes")}, false},
				"a ClusterSpecGuard that allows":         {[]*Guard{platforms.WithTenantExceptions(v1alpha1.GuardExceptionsAllowed)}, true},
				"a SpecGuard and a ClusterSpecGuard":     {[]*Guard{tenants, platforms}, false},
				"both, and the ClusterSpecGuard allows":  {[]*Guard{tenants, platforms.WithTenantExceptions(v1alpha1.GuardExceptionsAllowed)}, true},
			} {
				rules := NewGuardSet(takes.list, nil, System{}).WithExceptions([]*Exception{nil, made}).Rules(query)
				class, rule := rules.ClassifyAt(Identity{User: test.user}, test.path)
				if got, want := class == v1alpha1.ActorExpected, test.excused && takes.does; got != want || got && rule != "exception/hotfix" {
					t.Errorf("%s: the writer is %s under rule %q, want excused: %v", guards, class, rule, want)
				}
			}
		})
	}
}

func TestTheOldestExceptionsOfANamespaceAreInForce(t *testing.T) {
	var all []v1alpha1.SpecGuardException
	for i := range MaxNamespaceExceptions + 2 {
		all = append(all, *exception(strings.Repeat("a", i+1), func(e *v1alpha1.SpecGuardException) {
			e.CreationTimestamp = metav1.NewTime(testNow.Add(-time.Duration(i) * time.Minute))
		}))
	}
	all = append(all, *exception("young", func(e *v1alpha1.SpecGuardException) { e.Namespace = "other" }))
	if diff := cmp.Diff(map[int]bool{0: true, 1: true}, FindExcessExceptions(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheNextExpiryIsTheEndOfAnExceptionToo(t *testing.T) {
	made, errs := CompileException(exception("hotfix"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	set := NewGuardSet(nil, nil, System{}).WithExceptions([]*Exception{made})
	if next, ok := set.NextExpiry(testNow); !ok || !next.Equal(testNow.Add(time.Hour)) {
		t.Errorf("the next expiry is %s, %v", next, ok)
	}
	if next, ok := set.NextExpiry(testNow.Add(time.Hour)); ok {
		t.Errorf("the next expiry is %s after all exceptions have ended", next)
	}
}
