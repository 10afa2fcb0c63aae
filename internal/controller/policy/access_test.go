// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// reviewer answers reviews, and is the fake client for all else.
type reviewer struct {
	client.Client
	mu    sync.Mutex // reviews are asked for beside each other
	asked []string
	// denies names users who lack a verb, at all or for one resource. fails names those whose review
	// gets no answer.
	denies, fails map[string]bool
}

func (r *reviewer) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	review, ok := o.(*authorizationv1.SubjectAccessReview)
	if !ok {
		return r.Client.Create(ctx, o, options...)
	}
	of := review.Spec.ResourceAttributes
	key := review.Spec.User + " " + of.Verb
	r.mu.Lock()
	r.asked = append(r.asked, key+" "+of.Resource+" "+of.Namespace+"/"+of.Name)
	r.mu.Unlock()
	if r.fails[key] {
		return errors.New("connection reset")
	}
	review.Status.Allowed = !r.denies[key] && !r.denies[key+" "+of.Resource]
	return nil
}

func newAccessBench(t *testing.T, changes ...func(*planningtest.Cluster)) (*bench, *reviewer) {
	t.Helper()
	b := newBench(t, changes...)
	answers := &reviewer{Client: b.client, denies: map[string]bool{}, fails: map[string]bool{}}
	b.r.Client, b.r.Executor = answers, "executor"
	return b, answers
}

func TestBeforeAPlanIsMadeItsPermissionsAreAsked(t *testing.T) {
	const get, update, requester = "executor get deployments shop/web", "executor update deployments shop/web", "platform update deployments shop/web"
	tests := map[string]struct {
		denies, fails string
		asked         []string
		waits         string
	}{
		"both are allowed": {asked: []string{get, update, requester}},
		"the executor may not read it": {
			denies: "executor get", asked: []string{get, update, requester}, waits: "the executor may not get deployments in namespace shop: bind the ClusterRole plumbline-executor-targets there",
		},
		"the executor may not write it": {
			denies: "executor update", asked: []string{get, update, requester}, waits: "the executor may not update deployments in namespace shop",
		},
		"the author of the policy may not write it": {
			denies: "platform update", asked: []string{get, update, requester}, waits: "platform, the user of the plan, may not update it",
		},
		"the API server does not answer, and the executor will ask": {
			fails: "executor update", asked: []string{get, update, requester},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, answers := newAccessBench(t)
			answers.denies[test.denies], answers.fails[test.fails] = true, true
			result := b.look()
			if diff := cmp.Diff(test.asked, answers.asked, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			if made := len(b.plans()) == 1; made != (test.waits == "") {
				t.Errorf("a plan was made: %t", made)
			}
			if waits := b.status().WaitingFor; test.waits != "" && (!strings.Contains(waits, test.waits) || result.RequeueAfter != healthAgain) {
				t.Errorf("it waits for %q, and looks again in %s", waits, result.RequeueAfter)
			}
		})
	}
}

// withStandbys has the policy repair web and db while standbys serve.
func withStandbys(c *planningtest.Cluster) {
	c.Policy.Spec.Strategy = v1alpha1.StrategyBlueGreen
	c.Policy.Spec.Standby = &v1alpha1.StandbyTemplate{PodLabels: map[string]v1alpha1.LabelValue{"app": "standby"}}
	c.Drift("db", evil)
}

func TestWithoutTheRightsOfStandbysAPolicyMakesNoPlan(t *testing.T) {
	const (
		author   = "platform, the user of the plan, may not "
		executor = "the executor may not create abreleases in namespace shop: bind the ClusterRole plumbline-executor-standbys there"
	)
	for name, tc := range map[string]struct {
		denies, fails string
		waits         string
	}{
		"all rights are there":                       {},
		"the author may make no ABRelease":           {denies: "platform create abreleases", waits: author + "create abreleases for its standby: give the user that permission in namespace shop"},
		"the author may move no requests":            {denies: "platform update abreleases", waits: author + "update abreleases for its standby"},
		"the author may remove no ABRelease":         {denies: "platform delete abreleases", waits: author + "delete abreleases for its standby"},
		"the author may make no Deployment":          {denies: "platform create deployments", waits: author + "create deployments for its standby"},
		"the executor may make no standby":           {denies: "executor create abreleases", waits: executor},
		"no answer comes, and the executor will ask": {fails: "platform delete"},
		"the write of the target is missing as well": {denies: "platform update", waits: author + "update it"},
		"the author may not even delete Deployments": {denies: "platform delete deployments"},
		"the executor deletes no Deployment itself":  {denies: "executor delete deployments"},
		"the author may not read what is not read":   {denies: "platform get abreleases"},
	} {
		t.Run(name, func(t *testing.T) {
			b, answers := newAccessBench(t, withStandbys)
			answers.denies[tc.denies], answers.fails[tc.fails] = true, true
			b.look()
			if made := len(b.plans()) > 0; made != (tc.waits == "") {
				t.Errorf("a plan was made: %t", made)
			}
			if waits := b.status().WaitingFor; !strings.Contains(waits, tc.waits) {
				t.Errorf("it waits for %q", waits)
			}
			isTold := func(e notify.Event) bool { return e.Type == notify.PlanEscalated }
			if slices.ContainsFunc(b.told, isTold) != (tc.waits != "") || len(b.told) != 1 {
				t.Errorf("people were told %+v", b.told)
			}
		})
	}
}

func TestTheRightsOfStandbysAreAskedOncePerNamespace(t *testing.T) {
	b, answers := newAccessBench(t, withStandbys, func(c *planningtest.Cluster) {
		for _, name := range []string{"a", "b", "c", "d", "e"} { // of which one plan may have a quarter
			c.Add(name)
		}
	})
	b.look()
	asked := map[string]int{}
	for _, one := range answers.asked {
		if what, is := strings.CutSuffix(one, " shop/"); is {
			asked[what]++
		}
	}
	want := map[string]int{}
	for _, what := range []string{"create deployments", "create abreleases", "update abreleases", "delete abreleases"} {
		want["executor "+what], want["platform "+what] = 1, 1
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if plans := b.plans(); len(plans) != 1 || len(plans[0].Spec.Plan.Targets) != 2 {
		t.Errorf("plans are %+v", plans)
	}
}

func TestAPlanWithoutAStandbyNeedsNoRightsOfStandbys(t *testing.T) {
	b, answers := newAccessBench(t, withStandbys, func(c *planningtest.Cluster) {
		c.Policy.Spec.Strategy, c.Policy.Spec.Standby = v1alpha1.StrategyRolling, nil
	})
	answers.denies["platform create"], answers.denies["executor create"] = true, true
	b.look()
	if len(b.plans()) != 1 {
		t.Errorf("it waits for %q", b.status().WaitingFor)
	}
}

func TestAPolicyWhoseServiceAccountIsGoneMakesNoPlan(t *testing.T) {
	tests := map[string]struct {
		account string // its name in namespace shop; empty for none
		read    error
		waits   string
	}{
		"it exists":      {account: "repairs"},
		"it was deleted": {waits: "the ServiceAccount shop/repairs, which the plan acts as, does not exist"},
		"another exists": {account: "repairs2", waits: "the ServiceAccount shop/repairs, which the plan acts as, does not exist"},
		"it cannot be read, and the executor will read": {read: errors.New("connection reset")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, answers := newAccessBench(t, func(c *planningtest.Cluster) {
				c.Policy.Spec.RequestedBy, c.Policy.Spec.ServiceAccountName = "", "shop/repairs"
			})
			if test.account != "" {
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: test.account}}
				if err := b.client.Create(t.Context(), account); err != nil {
					t.Fatal(err)
				}
			}
			b.r.Live = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if _, account := o.(*metav1.PartialObjectMetadata); account && test.read != nil {
						return test.read
					}
					return api.Get(ctx, key, o, options...)
				},
			})
			b.look()
			if !slices.Contains(answers.asked, "system:serviceaccount:shop:repairs update deployments shop/web") {
				t.Errorf("reviews are %q", answers.asked)
			}
			if made := len(b.plans()) == 1; made != (test.waits == "") {
				t.Errorf("a plan was made: %t", made)
			}
			if waits := b.status().WaitingFor; test.waits != "" && !strings.Contains(waits, test.waits) {
				t.Errorf("it waits for %q", waits)
			}
		})
	}
}

func TestAMissingPermissionIsToldOnceAndAskedForAgain(t *testing.T) {
	b, answers := newAccessBench(t)
	answers.denies["executor update"] = true
	b.look()
	b.clock.SetTime(epoch.Add(time.Second))
	b.look()
	if len(answers.asked) != 3 {
		t.Errorf("within ten seconds it is asked for again: %q", answers.asked)
	}
	if events := b.events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning RemediationEscalated 1 drifted object needs a person: ") {
		t.Errorf("events are %q", events)
	}
	if len(b.told) != 1 || b.told[0].Type != notify.PlanEscalated {
		t.Errorf("told is %+v", b.told)
	}
	delete(answers.denies, "executor update")
	b.clock.SetTime(epoch.Add(healthAgain))
	b.look()
	if len(b.plans()) != 1 {
		t.Error("with the permission no plan is made")
	}
}

func TestTheOthersArePutBackBesideTargetsThatMayNotBeWritten(t *testing.T) {
	b, answers := newAccessBench(t, func(c *planningtest.Cluster) { c.Drift("db", evil) })
	b.r.denials.keep(b.Policy.Name, named{"shop", b.BaselineName("web")}, "no right", epoch)
	b.look()
	plans := b.plans()
	if len(plans) != 1 || len(plans[0].Spec.Plan.Targets) != 1 || plans[0].Spec.Plan.Targets[0].Name != "db" {
		t.Fatalf("plans are %+v", plans)
	}
	if len(answers.asked) != 3 {
		t.Errorf("reviews are %q", answers.asked)
	}
}

func TestWithoutAnExecutorNoPermissionIsAsked(t *testing.T) {
	b, answers := newAccessBench(t)
	b.r.Executor = ""
	b.look()
	if len(answers.asked) != 0 || len(b.plans()) != 1 {
		t.Errorf("reviews are %q, and there are %d plans", answers.asked, len(b.plans()))
	}
}
