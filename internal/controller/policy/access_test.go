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
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// reviewer answers reviews, and is the fake client for all else.
type reviewer struct {
	client.Client
	mu    sync.Mutex // reviews are asked for beside each other
	asked []string
	// denies and fails name users who lack the verb, and whose review gets no answer.
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
	review.Status.Allowed = !r.denies[key]
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
			denies: "platform update", asked: []string{get, update, requester}, waits: "platform, in whose name the plan acts, may not update it",
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

func TestAPolicyWhoseServiceAccountIsGoneMakesNoPlan(t *testing.T) {
	tests := map[string]struct {
		account string // its name in namespace shop; empty for none
		read    error
		waits   string
	}{
		"it exists":      {account: "repairs"},
		"it was deleted": {waits: "the ServiceAccount shop/repairs, in whose name the plan acts, does not exist"},
		"another exists": {account: "repairs2", waits: "the ServiceAccount shop/repairs, in whose name the plan acts, does not exist"},
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
