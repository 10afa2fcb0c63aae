// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Cluster is a cluster in memory, for tests that need no real API server, or need a server that
// misbehaves.
type Cluster struct {
	// Objects are those of the API server.
	Objects []client.Object
	// Live bodies by name; a name without one does not exist.
	Live map[string]string
	// Targets takes dry runs.
	Targets Targets
	// Hooks come before the fake's own answer.
	Hooks interceptor.Funcs
	// Time of the API server; nil is that of the tests.
	Time func() time.Time
	// Proxy and Forward answer for the processes in the cluster; nil for those that no test asks.
	Proxy   records.Proxy
	Forward proxies.Forward
}

// Connect returns the fake as a command sees it.
func (f Cluster) Connect(t *testing.T) *invocation.Cluster {
	t.Helper()
	scheme, err := invocation.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	hooks := f.Hooks
	if hooks.Create == nil {
		hooks.Create = AnswerWhoami
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(f.Objects...).
		WithStatusSubresource(&v1alpha1.Baseline{}, &v1alpha1.RemediationPlan{}, &v1alpha1.RemediationRequest{}, &v1alpha1.RemediationPolicy{}, &v1alpha1.RemediationLedger{}).WithInterceptorFuncs(hooks).Build()
	return &invocation.Cluster{
		WithWatch: api, Mapper: mapper, NewBuilder: func() *resource.Builder { return newBuilder(mapper) }, Namespace: "shop", Targets: f.Targets, Time: f.Time, Proxy: f.Proxy, Forward: f.Forward,
		Live: func(_ context.Context, mapping *meta.RESTMapping, _, name string) ([]byte, error) {
			body, ok := f.Live[name]
			if !ok {
				return nil, apierrors.NewNotFound(mapping.Resource.GroupResource(), name)
			}
			return []byte(body), nil
		},
	}
}

// newBuilder returns a builder that knows the types of a mapper, and reads no object.
func newBuilder(mapper meta.RESTMapper) *resource.Builder {
	return resource.NewFakeBuilder(
		func(schema.GroupVersion) (resource.RESTClient, error) { return nil, nil },
		func() (meta.RESTMapper, error) { return mapper, nil },
		func() (restmapper.CategoryExpander, error) { return restmapper.SimpleCategoryExpander{}, nil })
}

// AnswerWhoami answers the question that the plugin creates, and stores all else.
func AnswerWhoami(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
	review, asks := object.(*authenticationv1.SelfSubjectReview)
	if !asks {
		return api.Create(ctx, object, options...)
	}
	review.Status.UserInfo = authenticationv1.UserInfo{
		Username: "alice", Groups: []string{"sre", "system:authenticated"},
	}
	return nil
}
