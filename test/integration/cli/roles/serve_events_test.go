// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"encoding/base64"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// subprotocols are those by which a page in a browser sends a token.
func subprotocols(token string) []string {
	return []string{"v1.events.plumbline.dev", "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))}
}

// toEnd returns the last event of a stream that ends, and fails at an event of another namespace than the tenant.
func (l *listener) toEnd(t *testing.T, what string) (heard []wire.Event) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e, open := <-l.heard:
			if !open {
				return heard
			}
			if e.Namespace != "" && e.Namespace != tenant {
				t.Errorf("%s hears of another namespace: %+v", what, e)
			}
			heard = append(heard, e)
		case <-limit:
			t.Fatalf("waited %s for the end of the stream of %s: %+v", patience, what, heard)
		}
	}
}

// carryOut stores the whole life of a plan.
func carryOut(t *testing.T, p *v1alpha1.RemediationPlan) {
	t.Helper()
	carriedOut(t, p, begins)
	carriedOut(t, p, endsStep)
	carriedOut(t, p, endsPlan)
}

// The API server decides who hears an event of the API, while the stream lasts as well.
func TestTheAPITellsEventsToThoseWhoMayWatchThem(t *testing.T) {
	s := startServe(t)
	makeAccount(t, "hearing", "plumbline-view")
	makeAccount(t, "losing", "plumbline-view")
	before := planIn(t, tenant, "before-streams")
	s.awaitPlan(t, before)
	ofHearing, pod := accountToken(t, tenant, "hearing", nil), podOf(t, "hearing", "hearing")
	ofScreen, ofLosing := accountToken(t, tenant, "hearing", nil, "plumbline-api"), accountToken(t, tenant, "losing", nil)

	all := s.as(t, tokenOf(viewer)).connect(t, "")
	own := map[string]*listener{
		"an account":                     s.as(t, ofHearing).listen(t, ""),
		"an account, of one namespace":   s.as(t, ofHearing).connect(t, "?namespace="+tenant),
		"a token for the API alone":      s.as(t, ofScreen).listen(t, "?namespace="+tenant),
		"a page that sends subprotocols": s.as(t, "").connect(t, "", subprotocols(ofHearing)...),
	}
	losing := map[string]*listener{"server-sent events": s.as(t, ofLosing).listen(t, ""), "a WebSocket": s.as(t, ofLosing).connect(t, "?namespace="+tenant)}
	ofPod := s.as(t, accountToken(t, tenant, "hearing", pod)).connect(t, "")
	must(t, admin.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "losing-plumbline-view"}}))
	must(t, admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	awaitDenied(t, "system:serviceaccount:"+tenant+":losing")
	s.pass(time.Minute) // what the API server is asked for is not remembered any more

	theirs, ours := planIn(t, neighbor, "told-to-few"), planIn(t, tenant, "told-to-all")
	carryOut(t, theirs)
	carryOut(t, ours)
	for name, l := range own {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(wholeLife, typesOf(l.until(t, ours, "plan.completed", tenant))); diff != "" {
				t.Errorf("(-want +heard):\n%s", diff)
			}
		})
	}
	all.until(t, theirs, "plan.completed", tenant, neighbor)
	all.until(t, ours, "plan.completed", tenant, neighbor)

	t.Run("without the right there is no stream", func(t *testing.T) {
		wantForbidden(t, s.as(t, tokenOf(nobody)), "events", wire.MissingRight{Verb: "watch", Kind: "RemediationPlan"})
		wantForbidden(t, s.as(t, ofHearing), "events?namespace="+neighbor, wire.MissingRight{Verb: "watch", Kind: "RemediationPlan", Namespace: neighbor})
	})
	for name, l := range losing {
		t.Run("a role that was taken away ends the stream: "+name, func(t *testing.T) {
			heard := l.toEnd(t, "the account without a role")
			if last := heard[len(heard)-1]; last.Type != wire.EventEnded || last.Code != 4403 {
				t.Errorf("it ends with %+v", last)
			}
		})
	}
	t.Run("a token of a pod that was deleted ends the stream", func(t *testing.T) {
		heard := ofPod.toEnd(t, "the pod")
		if last := heard[len(heard)-1]; last.Code != 4401 {
			t.Errorf("it ends with %+v", last)
		}
	})
	select {
	case _, open := <-own["an account"].heard:
		if !open {
			t.Error("a stream of a caller with a role has ended")
		}
	default:
	}
}

// A rolling update loses no event: the stream goes on at another replica, which tells what the status of each plan tells.
func TestAStreamGoesOnAtAnotherReplica(t *testing.T) {
	first, second := startServe(t), startServe(t)
	open := map[string]func(s *served, since string) *listener{
		"server-sent events": func(s *served, since string) *listener {
			return s.as(t, tokenOf(viewer)).listen(t, "?namespace="+tenant, "Last-Event-ID", since)
		},
		"a WebSocket": func(s *served, since string) *listener {
			return s.as(t, tokenOf(viewer)).connect(t, "?namespace="+tenant+"&since="+since)
		},
	}
	streams := map[string]*listener{}
	for name := range open {
		streams[name] = open[name](first, "")
	}
	var plans []*v1alpha1.RemediationPlan
	halted := make(chan struct{})
	for i := range 6 {
		p := planIn(t, tenant, "rolling-"+strconv.Itoa(i))
		plans = append(plans, p)
		carriedOut(t, p, begins)
		if i == 2 { // in the middle of events
			go func() {
				defer close(halted)
				first.process.Halt(t)
			}()
		}
		carriedOut(t, p, endsStep)
		carriedOut(t, p, endsPlan)
	}
	<-halted
	last := planIn(t, tenant, "rolling-last")
	plans = append(plans, last)
	heard, again := map[string][]wire.Event{}, map[string]*listener{}
	for name, l := range streams {
		heard[name] = l.toEnd(t, name)
		if end := heard[name][len(heard[name])-1]; end.Type != wire.EventEnded || end.Code != 1001 {
			t.Errorf("%s: the stream of the replica that ends ends with %+v", name, end)
		}
		again[name] = open[name](second, heard[name][len(heard[name])-2].ID)
	}
	carryOut(t, last)
	for name, l := range again {
		t.Run(name, func(t *testing.T) {
			heard := slices.Concat(heard[name], l.allUntil(t, last, "plan.completed"))
			for _, p := range plans {
				must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
				var want, got []string
				for _, e := range events.Of(p) {
					want = append(want, e.Event.ID)
				}
				for i := range heard {
					if id := heard[i].ID; heard[i].PlanID == string(p.UID) && !slices.Contains(got, id) {
						got = append(got, id)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || len(want) != len(wholeLife) {
					t.Errorf("%s has %d events (-in its status +heard):\n%s", p.Name, len(want), diff)
				}
			}
		})
	}
}

// allUntil returns all events up to one of a type of a plan.
func (l *listener) allUntil(t *testing.T, p *v1alpha1.RemediationPlan, last wire.EventType) (heard []wire.Event) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e, open := <-l.heard:
			if !open || e.Type == wire.EventResync {
				t.Fatalf("the stream ended or was lapped before %s of plan %s: %+v", last, p.Name, e)
			}
			if heard = append(heard, e); e.PlanID == string(p.UID) && e.Type == last {
				return heard
			}
		case <-limit:
			t.Fatalf("waited %s for %s of plan %s: %+v", patience, last, p.Name, heard)
		}
	}
}
