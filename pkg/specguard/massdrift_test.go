// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const changedImage = "/spec/template/spec/containers/[name=app]/image"

var (
	imageByMallory = Cause{Path: "/spec/template/spec/containers/*/image", User: "mallory"}
	someHourAgo    = testNow.Add(-time.Hour)
)

// crowd is so many objects of one namespace in one state.
type crowd struct {
	namespace string
	objects   int
	findings  []v1alpha1.Finding // none: in sync
	firstSeen time.Time
}

func inSync(namespace string, objects int) crowd {
	return crowd{namespace: namespace, objects: objects}
}

func drifting(namespace string, objects int, user, path string, age time.Duration) crowd {
	seen := testNow.Add(-age)
	return crowd{namespace, objects, []v1alpha1.Finding{{
		Path: path, Class: v1alpha1.ClassOther, Actor: v1alpha1.Actor{User: user, Class: v1alpha1.ActorUntrusted}, FirstSeenTime: metav1.NewTime(seen),
	}}, seen}
}

// junk are objects that nobody trusted created.
func junk(namespace string, objects int, user string) crowd {
	c := drifting(namespace, objects, user, "", time.Minute)
	c.findings[0].Class = v1alpha1.ClassObjectUnexpected
	return c
}

func populationOf(crowds ...crowd) (p Population) {
	for _, c := range crowds {
		status := v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Findings: c.findings}
		if len(c.findings) > 0 {
			status.State, status.FirstSeenTime = v1alpha1.StateDrifted, new(metav1.NewTime(c.firstSeen))
		}
		for range c.objects {
			p.Add(c.namespace, &status)
		}
	}
	return p
}

// teams are ten namespaces of ten objects, of which so many drift.
func teams(drifted int, user, path string, age time.Duration) (all []crowd) {
	for i := range 10 {
		namespace := fmt.Sprint("team-", i)
		all = append(all, drifting(namespace, drifted, user, path, age), inSync(namespace, 10-drifted))
	}
	return all
}

func TestOneTenantFreezesNobodyElse(t *testing.T) {
	everybody := append(teams(0, "", "", 0), drifting("team-0", 1, "mallory", changedImage, time.Minute))
	own := map[string]time.Time{"mallorys": testNow}
	for name, tc := range map[string]struct {
		crowds []crowd
		want   Freeze
	}{
		"objects that nobody trusted created":           {[]crowd{junk("mallorys", 45, "mallory")}, Freeze{}},
		"thousands of them":                             {[]crowd{junk("mallorys", 4500, "mallory")}, Freeze{}},
		"much drift in the namespace of the tenant":     {[]crowd{drifting("mallorys", 45, "mallory", changedImage, time.Minute)}, Freeze{Namespaces: own}},
		"more drift there than there is anything else":  {[]crowd{drifting("mallorys", 450, "mallory", changedImage, time.Minute)}, Freeze{Namespaces: own}},
		"junk among objects that are as they should be": {[]crowd{junk("mallorys", 45, "mallory"), inSync("mallorys", 5)}, Freeze{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := populationOf(append(tc.crowds, everybody...)...)
			got := NextFreeze(Freeze{}, p, testNow)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
			if got.HoldsObject("team-0", Causes{imageByMallory: testNow}) {
				t.Error("the attack on team-0 is frozen")
			}
		})
	}
}

func TestMassDriftOfOneNamespace(t *testing.T) {
	const minute = time.Minute
	frozen := Freeze{Namespaces: map[string]time.Time{"shop": someHourAgo}}
	of := func(user string, objects int, age time.Duration) crowd {
		return drifting("shop", objects, user, changedImage, age)
	}
	for name, tc := range map[string]struct {
		before Freeze
		crowds []crowd
		want   bool
	}{
		"two of two are too few":                           {Freeze{}, []crowd{of("a", 2, minute)}, false},
		"three of ten":                                     {Freeze{}, []crowd{of("a", 3, minute), inSync("shop", 7)}, true},
		"three of ten by three users":                      {Freeze{}, []crowd{of("a", 1, minute), of("b", 1, minute), of("c", 1, minute), inSync("shop", 7)}, true},
		"three of eleven":                                  {Freeze{}, []crowd{of("a", 3, minute), inSync("shop", 8)}, false},
		"thirty of a hundred":                              {Freeze{}, []crowd{of("a", 30, minute), inSync("shop", 70)}, true},
		"old drift does not begin it":                      {Freeze{}, []crowd{of("a", 9, 11*minute), inSync("shop", 1)}, false},
		"junk does not hide it":                            {Freeze{}, []crowd{of("a", 3, minute), inSync("shop", 7), junk("shop", 100, "a")}, true},
		"it holds while 15 % drift":                        {frozen, []crowd{of("a", 3, 30*minute), inSync("shop", 17)}, true},
		"it ends below 15 %":                               {frozen, []crowd{of("a", 3, 30*minute), inSync("shop", 18)}, false},
		"it ends with one left":                            {frozen, []crowd{of("a", 1, 30*minute), inSync("shop", 2)}, false},
		"it holds with two of a few":                       {frozen, []crowd{of("a", 2, 30*minute), inSync("shop", 1)}, true},
		"what made it begin counts":                        {frozen, []crowd{of("a", 3, 70*minute), inSync("shop", 1)}, true},
		"what had drifted before it does not prolong it":   {frozen, []crowd{of("a", 20, 71*minute), inSync("shop", 1)}, false},
		"new drift holds it as well":                       {frozen, []crowd{of("a", 3, minute), inSync("shop", 17)}, true},
		"nothing is guarded any more":                      {frozen, nil, false},
		"a clock that was put back":                        {Freeze{Namespaces: map[string]time.Time{"shop": testNow.Add(time.Hour)}}, []crowd{of("a", 3, minute), inSync("shop", 7)}, true},
		"a freeze of everything holds as one of its own":   {Freeze{Everything: someHourAgo}, []crowd{of("a", 3, 30*minute), inSync("shop", 17)}, true},
		"and ends as one of its own, too":                  {Freeze{Everything: someHourAgo}, []crowd{of("a", 3, 30*minute), inSync("shop", 18)}, false},
		"a freeze of another namespace is none of its own": {Freeze{Namespaces: map[string]time.Time{"x": someHourAgo}}, []crowd{of("a", 3, minute), inSync("shop", 8)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := NextFreeze(tc.before, populationOf(tc.crowds...), testNow)
			if got.HasScopes() != tc.want || got.HoldsObject("shop", nil) != tc.want || len(got.Causes) > 0 {
				t.Errorf("frozen: %+v, want %t", got, tc.want)
			}
		})
	}
}

func TestMassDriftOfOneCauseOverTheCluster(t *testing.T) {
	common := func(at time.Time) Freeze { return Freeze{Causes: map[Cause]time.Time{imageByMallory: at}} }
	spread := func(namespaces, of int, user string, age time.Duration) (all []crowd) {
		for i := range of {
			n := 0
			if i < namespaces {
				n = 1
			}
			namespace := fmt.Sprint("team-", i)
			all = append(all, drifting(namespace, n, user, changedImage, age), inSync(namespace, 2-n))
		}
		return all
	}
	// changed is one of two objects in each of ten namespaces, each changed otherwise.
	changed := func(change func(i int, f *v1alpha1.Finding)) []crowd {
		all := spread(10, 10, "mallory", time.Minute)
		for i := range all {
			for j := range all[i].findings {
				change(i, &all[i].findings[j])
			}
		}
		return all
	}
	unproven := func(i int, f *v1alpha1.Finding) {
		f.Actor = v1alpha1.Actor{Class: v1alpha1.ActorUnknown, User: fmt.Sprint("user-", i)}
	}
	otherKeys := func(i int, f *v1alpha1.Finding) {
		f.Path = fmt.Sprintf("/spec/template/spec/containers/[name=c%d]/image", i)
	}
	halves := func(i int, f *v1alpha1.Finding) { f.Actor.User = fmt.Sprint("user-", i/2%2) }
	for name, tc := range map[string]struct {
		before Freeze
		crowds []crowd
		want   Freeze
	}{
		"a controller changes one of two objects in each namespace": {Freeze{}, spread(10, 10, "mallory", time.Minute), common(testNow)},
		"containers have other names":                               {Freeze{}, changed(otherKeys), common(testNow)},
		"users are not proven, as after an upgrade": {Freeze{}, changed(unproven), Freeze{Causes: map[Cause]time.Time{
			{Path: imageByMallory.Path}: testNow,
		}}},
		"half of it by another user": {Freeze{}, changed(halves), Freeze{}},
		"it is old":                  {Freeze{}, spread(10, 10, "mallory", time.Hour), Freeze{}},
		"less than thirty percent":   {Freeze{}, spread(5, 10, "mallory", time.Minute), Freeze{}},
		"two namespaces, one of which has too few": {Freeze{}, []crowd{
			drifting("a", 2, "mallory", changedImage, time.Minute), drifting("b", 2, "mallory", changedImage, time.Minute),
		}, Freeze{}},
		"it holds while 15 % are left":                {common(someHourAgo), spread(4, 10, "mallory", 30*time.Minute), common(someHourAgo)},
		"it ends when less is left":                   {common(someHourAgo), spread(3, 10, "mallory", 30*time.Minute), Freeze{}},
		"it ends when one namespace alone is left":    {common(someHourAgo), append(spread(0, 10, "", 0), drifting("own", 30, "mallory", changedImage, 30*time.Minute)), Freeze{}},
		"what had drifted before does not prolong it": {common(someHourAgo), spread(10, 10, "mallory", 71*time.Minute), Freeze{}},
		"a whole freeze becomes one of a cause":       {Freeze{Everything: someHourAgo}, spread(4, 10, "mallory", 30*time.Minute), common(someHourAgo)},
	} {
		t.Run(name, func(t *testing.T) {
			got := NextFreeze(tc.before, populationOf(tc.crowds...), testNow)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACommonCauseHoldsItsOwnDriftOnly(t *testing.T) {
	f := NextFreeze(Freeze{}, populationOf(teams(2, "mallory", changedImage, time.Minute)...), testNow)
	if f.HasScopes() {
		t.Fatalf("20 %% freeze %+v", f)
	}
	f = Freeze{Causes: map[Cause]time.Time{imageByMallory: testNow}}
	for name, tc := range map[string]struct {
		user, path string
		want       bool
	}{
		"the same":          {"mallory", changedImage, true},
		"another container": {"mallory", "/spec/template/spec/containers/[name=x]/image", true},
		"another user":      {"eve", changedImage, false},
		"another path":      {"mallory", "/spec/replicas", false},
	} {
		d := drifting("x", 1, tc.user, tc.path, 0)
		if got := f.HoldsObject("x", CausesOf(d.findings)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := f.MayHoldObject("x", []string{tc.path}, []string{tc.user}); got != tc.want {
			t.Errorf("%s, known by paths and users: %t", name, got)
		}
	}
	if !f.MayHoldObject("x", []string{changedImage}, nil) {
		t.Error("users that are not told are nobody")
	}
	if f.MayHoldObject("x", nil, nil) {
		t.Error("an object that is gone has an image")
	}
}

func TestAFreezeIsBoundedAndWhatIsCutFreezesEverything(t *testing.T) {
	var many []crowd
	for i := range maxFrozenNamespaces + 1 {
		many = append(many, drifting(fmt.Sprintf("n-%03d", i), 3, fmt.Sprint("user-", i), changedImage, time.Minute))
	}
	before := Freeze{Namespaces: map[string]time.Time{"n-128": someHourAgo}}
	cut := NextFreeze(before, populationOf(many...), testNow)
	_, kept := cut.Namespaces["n-128"]
	if len(cut.Namespaces) != maxFrozenNamespaces || !kept || !cut.HoldsObject("elsewhere", nil) {
		t.Errorf("%d namespaces, the oldest kept: %t, everything since %s", len(cut.Namespaces), kept, cut.Everything)
	}
	later := testNow.Add(time.Hour)
	if again := NextFreeze(cut, populationOf(many...), later); !again.Everything.Equal(testNow) {
		t.Errorf("everything is frozen since %s", again.Everything)
	}
	less := NextFreeze(cut, populationOf(many[1:]...), later)
	if less.HoldsObject("elsewhere", nil) || len(less.Namespaces) != maxFrozenNamespaces {
		t.Errorf("%d namespaces and everything since %s", len(less.Namespaces), less.Everything)
	}
	var wide []crowd
	for _, c := range teams(3, "mallory", changedImage, time.Minute) {
		for i := range maxFrozenCauses * len(c.findings) {
			f := c.findings[0]
			f.Path = fmt.Sprint("/spec/field-", i)
			c.findings = append(c.findings, f)
		}
		wide = append(wide, c)
	}
	if f := NextFreeze(Freeze{}, populationOf(wide...), testNow); len(f.Causes) != maxFrozenCauses || f.Everything.IsZero() {
		t.Errorf("%d causes and everything since %s", len(f.Causes), f.Everything)
	}
}

func TestAFreezeIsReadAsItWasWritten(t *testing.T) {
	f := Freeze{
		Everything: someHourAgo, Namespaces: map[string]time.Time{"b": someHourAgo, "a": testNow},
		Causes: map[Cause]time.Time{{}: testNow, imageByMallory: someHourAgo, {Path: "/x"}: testNow},
	}
	got := FreezeOf(&v1alpha1.GuardStatus{MassDrift: f.Status()})
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (Freeze{}).Status() != nil {
		t.Error("nothing is something")
	}
}

func TestAConditionThatNothingExplainsFreezesEverything(t *testing.T) {
	told := []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift, LastTransitionTime: metav1.NewTime(someHourAgo)}}
	for name, tc := range map[string]struct {
		status v1alpha1.GuardStatus
		want   Freeze
	}{
		"a guard without the condition": {v1alpha1.GuardStatus{}, Freeze{}},
		"a guard of an earlier version": {v1alpha1.GuardStatus{Conditions: told}, Freeze{Everything: someHourAgo}},
		"one of a version to come":      {v1alpha1.GuardStatus{Conditions: told, MassDrift: &v1alpha1.MassDrift{}}, Freeze{Everything: someHourAgo}},
		"one that does not say when":    {v1alpha1.GuardStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}}, Freeze{Everything: time.Unix(0, 0)}},
		"one that explains the condition": {v1alpha1.GuardStatus{Conditions: told, MassDrift: &v1alpha1.MassDrift{
			Namespaces: []v1alpha1.FrozenNamespace{{Name: "a", StartTime: metav1.NewTime(testNow)}},
		}}, Freeze{Namespaces: map[string]time.Time{"a": testNow}}},
	} {
		if diff := cmp.Diff(tc.want, FreezeOf(&tc.status), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	junkOnly := populationOf(append(teams(0, "", "", 0), junk("mallorys", 45, "mallory"))...)
	if f := NextFreeze(FreezeOf(&v1alpha1.GuardStatus{Conditions: told}), junkOnly, testNow); f.HasScopes() {
		t.Errorf("junk still freezes after the upgrade: %+v", f)
	}
}
