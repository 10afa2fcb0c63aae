// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/cluster"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const root = "../../.."

func newWorld(t *testing.T) *servetest.World {
	t.Helper()
	return servetest.New(t, slog.New(slog.DiscardHandler), servetest.Shop(t, root)...)
}

// as is the context of a request of a caller, who may be about to write.
func as(t *testing.T, w *servetest.World, token string, writes bool) context.Context {
	t.Helper()
	caller, err := w.Callers.Identify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	caller.Writes = writes
	return callers.With(t.Context(), caller)
}

func plansOf(list *v1alpha1.RemediationPlanList) (names []string) {
	for i := range list.Items {
		names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

const inShop, inBank = "shop/production-e82871e6b1", "bank/secret-production-e82871e6b1"

func TestAListHasWhatTheCallerMayRead(t *testing.T) {
	tests := map[string]struct {
		token, namespace string
		want             []string
		forbidden        bool
	}{
		"all, with the right to all":                   {"alice", "", []string{inBank, inShop}, false},
		"all, with a token that cannot write":          {"screen", "", []string{inBank, inShop}, false},
		"one namespace, with the right to all":         {"alice", "bank", []string{inBank}, false},
		"all, with the right to one namespace":         {"bob", "", []string{inShop}, false},
		"the namespace of the right":                   {"bob", "shop", []string{inShop}, false},
		"another namespace":                            {"bob", "bank", nil, true},
		"a namespace that is not there":                {"bob", "none", nil, true},
		"all, without any right":                       {"eve", "", nil, false},
		"one namespace, without any right":             {"eve", "shop", nil, true},
		"a namespace without objects, with all rights": {"alice", "none", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var list v1alpha1.RemediationPlanList
			err := w.Cluster.List(as(t, w, tc.token, false), &list, client.InNamespace(tc.namespace), client.Limit(500))
			if apierrors.IsForbidden(err) != tc.forbidden || err != nil && !tc.forbidden {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plansOf(&list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if list.Continue != "" {
				t.Errorf("the list goes on at %q", list.Continue)
			}
			if sent := w.Server.Sent(); len(sent) > 0 {
				t.Errorf("the API server was asked: %+v", sent)
			}
		})
	}
}

func TestAnObjectIsReadWithTheRightOfItsNamespace(t *testing.T) {
	var p v1alpha1.RemediationPlan
	shop, bank := client.ObjectKey{Namespace: "shop", Name: "production-e82871e6b1"}, client.ObjectKey{Namespace: "bank", Name: "secret-production-e82871e6b1"}
	w := newWorld(t)
	if err := w.Cluster.Get(as(t, w, "bob", false), shop, &p); err != nil || p.Name != shop.Name {
		t.Errorf("%s: %v", p.Name, err)
	}
	there := w.Cluster.Get(as(t, w, "bob", false), bank, &p)
	if !apierrors.IsForbidden(there) {
		t.Errorf("got %v", there)
	}
	if missing := w.Cluster.Get(as(t, w, "bob", false), client.ObjectKey{Namespace: "bank", Name: "none"}, &p); !apierrors.IsForbidden(missing) ||
		strings.ReplaceAll(missing.Error(), "none", bank.Name) != there.Error() {
		t.Errorf("an object that is there is told from one that is not: %v, %v", there, missing)
	}
	if err := w.Cluster.Get(as(t, w, "bob", false), client.ObjectKey{Name: "production"}, &v1alpha1.Environment{}); !apierrors.IsForbidden(err) {
		t.Errorf("an object of the whole cluster: %v", err)
	}
}

func TestNoAnswerWithoutRightsOrACaller(t *testing.T) {
	w := newWorld(t)
	var problem *wire.Problem
	if err := w.Cluster.List(t.Context(), &v1alpha1.RemediationPlanList{}); !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		t.Errorf("a list without a caller: %v", err)
	}
	if err := w.Cluster.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "x"}, &v1alpha1.RemediationPlan{}); !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		t.Errorf("a read without a caller: %v", err)
	}
	if err := w.Cluster.Create(t.Context(), &v1alpha1.RemediationPlan{}); !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		t.Errorf("a write without a caller: %v", err)
	}
	if _, err := w.Cluster.Whoami(t.Context()); !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		t.Errorf("a name without a caller: %v", err)
	}
	bob := as(t, w, "bob", false)
	w.GoAway(true)
	list := &v1alpha1.RemediationPlanList{}
	if err := w.Cluster.List(bob, list); !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable || len(list.Items) > 0 {
		t.Errorf("a right that cannot be asked for: %v, %v", err, list.Items)
	}
	if sent := w.Server.Sent(); len(sent) > 0 {
		t.Errorf("the API server was asked: %+v", sent)
	}
}

func TestARightThatWasTakenAwayEndsWithTheMemory(t *testing.T) {
	w := newWorld(t)
	names := func() []string {
		list := &v1alpha1.RemediationPlanList{}
		if err := w.Cluster.List(as(t, w, "bob", false), list); err != nil {
			t.Fatal(err)
		}
		return plansOf(list)
	}
	for _, step := range []struct {
		pass time.Duration
		want []string
	}{{0, []string{inShop}}, {10*time.Second - 1, []string{inShop}}, {1, nil}} {
		w.Pass(step.pass)
		if diff := cmp.Diff(step.want, names()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.Grant(servetest.Right{User: "bob", Verb: "list", Namespace: "shop"}, false)
	}
}

// A request for a caller has the token of the caller, and no identity of the server.
func TestNoCredentialOfTheServerIsSentForACaller(t *testing.T) {
	w := newWorld(t)
	plan := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}}
	ref := exec.Reference{GVK: canon.ParseGVK("apps/v1", "Deployment"), Namespace: "shop", Name: "web"}
	dryRuns := w.Cluster.DryRuns()
	sends := map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { return w.Cluster.Create(ctx, plan.DeepCopy()) },
		"update": func(ctx context.Context) error { return w.Cluster.Update(ctx, plan.DeepCopy()) },
		"patch": func(ctx context.Context) error {
			return w.Cluster.Patch(ctx, plan.DeepCopy(), client.RawPatch(types.MergePatchType, []byte("{}")))
		},
		"delete": func(ctx context.Context) error { return w.Cluster.Delete(ctx, plan.DeepCopy()) },
		"watch": func(ctx context.Context) error {
			_, err := w.Cluster.Watch(ctx, &v1alpha1.RemediationPlanList{})
			return err
		},
		"read of a request that writes": func(ctx context.Context) error {
			return w.Cluster.Get(ctx, client.ObjectKeyFromObject(plan), plan.DeepCopy())
		},
		"list of a request that writes": func(ctx context.Context) error { return w.Cluster.List(ctx, &v1alpha1.RemediationPlanList{}) },
		"body of a revision": func(ctx context.Context) error {
			return w.Cluster.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-1"}, &v1alpha1.BaselineRevision{})
		},
		"list of namespaces": func(ctx context.Context) error { return w.Cluster.List(ctx, &corev1.NamespaceList{}) },
		"get of a target":    func(ctx context.Context) error { _, err := dryRuns.Get(ctx, ref); return err },
		"put of a target":    func(ctx context.Context) error { _, err := dryRuns.Put(ctx, ref, []byte("{}"), true); return err },
		"post of a target":   func(ctx context.Context) error { _, err := dryRuns.Post(ctx, ref, []byte("{}"), true); return err },
		"patch of a target":  func(ctx context.Context) error { _, err := dryRuns.Patch(ctx, ref, []byte("{}")); return err },
	}
	for name, send := range sends {
		t.Run(name, func(t *testing.T) {
			_ = send(as(t, w, "alice", true)) // the server stores no object, so some answers are errors
			sent := w.Server.Sent()
			if len(sent) == 0 {
				t.Fatal("nothing was sent")
			}
			for _, s := range sent {
				if got := s.Header.Values("Authorization"); !slices.Equal(got, []string{"Bearer alice"}) {
					t.Errorf("%s %s is authorized by %q", s.Method, s.Path, got)
				}
				if s.Certificates > 0 || strings.Contains(fmt.Sprint(s.Header), servetest.Identity) {
					t.Errorf("%s %s has an identity of the server: %d certificates, %v", s.Method, s.Path, s.Certificates, s.Header)
				}
				for header := range s.Header {
					if strings.HasPrefix(header, "Impersonate-") {
						t.Errorf("%s %s has %s", s.Method, s.Path, header)
					}
				}
			}
			err := send(as(t, w, "screen", true))
			var problem *wire.Problem
			if !errors.As(err, &problem) || problem.Type != wire.ProblemBase+string(wire.TokenAudience) || !apierrors.IsForbidden(err) {
				t.Errorf("a token that cannot write: %v", err)
			}
			if sent := w.Server.Sent(); len(sent) > 0 {
				t.Errorf("something was sent with a token that cannot write: %+v", sent)
			}
		})
	}
	t.Run("a method that the door does not use", func(t *testing.T) {
		_ = w.Cluster.Status().Update(as(t, w, "alice", true), plan.DeepCopy())
		_ = w.Cluster.SubResource("scale").Update(as(t, w, "alice", true), plan.DeepCopy())
		for _, s := range w.Server.Sent() {
			if s.Header.Get("Authorization") != "" || s.Certificates > 0 || strings.Contains(fmt.Sprint(s.Header), servetest.Identity) {
				t.Errorf("%s %s has an identity: %v", s.Method, s.Path, s.Header)
			}
		}
	})
}

func TestTheCacheHasNoBodiesAndNoSecrets(t *testing.T) {
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	cached := map[string]bool{}
	for _, o := range cluster.Cached() {
		known, _, err := kinds.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		cached[known[0].Kind] = true
	}
	unread := map[string]bool{"BaselineRevision": true, "TrafficRouter": true} // revisions are read with the caller's token, and no operation reads routers
	for kind := range kinds.KnownTypes(v1alpha1.GroupVersion) {
		if _, isKind := kinds.KnownTypes(v1alpha1.GroupVersion)[kind+"List"]; isKind && cached[kind] == unread[kind] {
			t.Errorf("%s is in the cache: %t", kind, cached[kind])
		}
	}
}
