// SPDX-License-Identifier: Apache-2.0

package servetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/serve/answers"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/cluster"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ErrAway is the error of an API server that does not answer.
var ErrAway = errors.New("the API server is away")

// Token is one that the API server knows.
type Token struct {
	User string
	// ForServer and ForAPI are the audiences: that of the API server, and that of the REST API.
	ForServer, ForAPI bool
}

// Right is one to read, in all namespaces if none is named. An empty resource is each one.
type Right struct{ User, Verb, Resource, Namespace string }

// World has users, objects and rights.
type World struct {
	Clock   *testingclock.FakePassiveClock
	Server  *Server
	Cache   *Cache
	Callers *callers.Callers
	Cluster *cluster.Cluster
	Reviews *answers.Metrics
	// Issued returns the token that an issuer has given; nil if the API server trusts no issuer.
	Issued func(token string) Token

	mu     sync.Mutex
	tokens map[string]Token
	rights map[Right]bool
	away   bool
}

// New makes a world. The users alice, bob and screen have tokens of their names; alice may read all, bob the namespace shop, and
// screen all with a token that cannot write. The user eve has a token and no right.
func New(t *testing.T, log *slog.Logger, objects ...client.Object) *World {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	w := &World{
		Clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), Server: newServer(t), Reviews: answers.NewMetrics(),
		tokens: map[string]Token{
			"alice": {"alice", true, false}, "bob": {"bob", true, true}, "screen": {"screen", false, true}, "eve": {"eve", true, false}, "vault": {"alice", false, false},
		},
		rights: map[Right]bool{},
	}
	for _, verb := range []string{"get", "list", "watch"} {
		w.Grant(Right{"alice", verb, "", ""}, true)
		w.Grant(Right{"screen", verb, "", ""}, true)
		w.Grant(Right{"bob", verb, "", "shop"}, true)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, o := range append(cluster.Cached(), &v1alpha1.BaselineRevision{}) {
		mapper.Add(gvkOf(t, kinds, o), scopeOf(o))
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	w.Cache = &Cache{scheme: kinds, objects: objects, handlers: map[string][]toolscache.ResourceEventHandler{}}
	w.Callers = callers.New(tokens{w}, w.Clock, w.Reviews.Of("token"))
	w.Cluster, err = cluster.New(&cluster.Config{
		Server: w.Server.Config, Scheme: kinds, Mapper: mapper, Cache: w.Cache, Now: w.Clock.Now, Log: log,
		Processes: cluster.Processes{Namespace: actions.SystemNamespace, Reader: w.Cache, HTTP: evidencehttp.NewClient()},
		Rights:    rights.New(access{w}, w.Clock, w.Reviews.Of("access")),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func gvkOf(t *testing.T, kinds *runtime.Scheme, o client.Object) schema.GroupVersionKind {
	t.Helper()
	gvk, err := apiutil.GVKForObject(o, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return gvk
}

// scopeOf tells kinds of the whole cluster from those of a namespace.
func scopeOf(o client.Object) meta.RESTScope {
	switch o.(type) {
	case *v1alpha1.ClusterSpecGuard, *v1alpha1.Environment, *v1alpha1.GuardDefaults, *v1alpha1.RemediationPolicy, *v1alpha1.RolloutStrategy:
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// Grant gives or takes a right.
func (w *World) Grant(r Right, granted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rights[r] = granted
}

// Know has the API server take a token.
func (w *World) Know(token string, of Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[token] = of
}

// Revoke ends a token.
func (w *World) Revoke(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tokens, token)
}

// GoAway has the API server answer no review from now on, or answer again.
func (w *World) GoAway(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// Pass lets time pass.
func (w *World) Pass(d time.Duration) { w.Clock.SetTime(w.Clock.Now().Add(d)) }

type tokens struct{ *World }

// Review implements callers.Reviewer.
func (w tokens) Review(_ context.Context, token, audience string) (authenticationv1.TokenReviewStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, found := w.tokens[token]
	if !found && w.Issued != nil {
		known = w.Issued(token)
	}
	switch {
	case w.away:
		return authenticationv1.TokenReviewStatus{}, ErrAway
	case audience == "" && known.ForServer, audience == callers.Audience && known.ForAPI:
		return authenticationv1.TokenReviewStatus{
			Authenticated: true, User: authenticationv1.UserInfo{Username: known.User, Groups: []string{"system:authenticated"}}, Audiences: []string{audience},
		}, nil
	}
	return authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}, nil
}

type access struct{ *World }

// Review implements rights.Reviewer.
func (w access) Review(_ context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return false, ErrAway
	}
	a := *spec.ResourceAttributes
	if a.Subresource != "" {
		a.Resource += "/" + a.Subresource
	}
	return slices.ContainsFunc([]Right{
		{spec.User, a.Verb, "", ""}, {spec.User, a.Verb, "", a.Namespace}, {spec.User, a.Verb, a.Resource, ""}, {spec.User, a.Verb, a.Resource, a.Namespace},
	}, func(r Right) bool { return w.rights[r] && (r.Namespace == "" || r.Namespace == a.Namespace) }), nil
}

// Shop has one object of each sort in the namespace shop and in the whole cluster: those of the golden files of package wire. The
// namespace bank has copies of those in shop.
func Shop(t *testing.T, root string) (objects []client.Object) {
	t.Helper()
	for _, of := range []struct {
		name   string
		object client.Object
	}{
		{"policy", &v1alpha1.RemediationPolicy{}}, {"plan", &v1alpha1.RemediationPlan{}}, {"release", &v1alpha1.ABRelease{}},
		{"strategy", &v1alpha1.RolloutStrategy{}}, {"baseline", &v1alpha1.Baseline{}}, {"environment", &v1alpha1.Environment{}},
		{"guard", &v1alpha1.ClusterSpecGuard{}}, {"assessment", &v1alpha1.EffectivenessAssessment{}},
	} {
		raw, err := os.ReadFile(filepath.Join(root, "internal/httpapi/wire/testdata", of.name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(raw, of.object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, of.object)
	}
	objects = append(objects, &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a0000000-0000-4000-8000-000000000002"}})
	for i, o := range objects {
		if o.GetNamespace() == "" {
			continue
		}
		other := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
		other.SetNamespace("bank")
		other.SetName("secret-" + o.GetName())
		other.SetUID(types.UID(fmt.Sprintf("ba000000-0000-4000-8000-%012d", i)))
		objects = append(objects, other)
	}
	return objects
}
