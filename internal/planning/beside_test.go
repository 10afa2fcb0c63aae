// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// listed is a reader that notes the lists that it is asked for.
type listed struct {
	client.Reader
	asked []string
}

func (l *listed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	of := client.ListOptions{}
	of.ApplyOptions(options)
	l.asked = append(l.asked, fmt.Sprintf("%T of %q", list, of.Namespace))
	return l.Reader.List(ctx, list, options...)
}

// cached is the assessor's Source, with the reader that it asks.
func (c *cluster) cached() (*FromCache, *listed) {
	c.T.Helper()
	world, err := c.live().World(context.Background(), epoch)
	if err != nil {
		c.T.Fatal(err)
	}
	known := views{}
	for name, d := range c.Objects {
		known[kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: name}] = kube.View{Current: c.Decode(d)}
	}
	reader := &listed{Reader: c.Reader()}
	return &FromCache{Cache: reader, Live: reader, Snapshot: func() *guards.Snapshot { return world.Guards }, Objects: known}, reader
}

func needs(component string, on ...string) v1alpha1.ComponentDependencies {
	return v1alpha1.ComponentDependencies{Component: component, DependsOn: on}
}

func TestWhatIsNotReadyBesideAnObject(t *testing.T) {
	ill := func(c *cluster, name string) {
		d := c.Objects[name]
		d.Status.ObservedGeneration, d.Status.ReadyReplicas, d.Status.AvailableReplicas = d.Generation, 0, 0
		d.Status.UpdatedReplicas, d.Status.Conditions = 0, nil
	}
	tests := map[string]struct {
		graph []v1alpha1.ComponentDependencies
		ill   []string
		want  []string
	}{
		"no graph":                            {nil, []string{"db"}, nil},
		"all is ready":                        {[]v1alpha1.ComponentDependencies{needs("db", "web")}, nil, nil},
		"an object that needs it":             {[]v1alpha1.ComponentDependencies{needs("db", "web")}, []string{"db"}, []string{"Deployment shop/db, which needs web, is not ready"}},
		"an object that needs it by another":  {[]v1alpha1.ComponentDependencies{needs("db", "web"), needs("cache", "db")}, []string{"cache"}, []string{"Deployment shop/cache, which needs web, is not ready"}},
		"an object that it needs":             {[]v1alpha1.ComponentDependencies{needs("web", "db")}, []string{"db"}, nil},
		"the object itself is no side effect": {[]v1alpha1.ComponentDependencies{needs("db", "web"), needs("web", "db")}, []string{"web"}, nil},
		"an object that the graph leaves out": {[]v1alpha1.ComponentDependencies{needs("cache", "web")}, []string{"db"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Environment.Spec.Dependencies = tc.graph
			for _, name := range tc.ill {
				ill(c, name)
			}
			src, _ := c.cached()
			got, err := src.FindUnready(t.Context(), "shop", c.BaselineName("web"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what is not ready differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Each end of an assessment read all plans, guards and Baselines of the cluster.
func TestWhatIsReadToLookBesideAnObject(t *testing.T) {
	environments, baselines := `*v1alpha1.EnvironmentList of ""`, `*v1alpha1.BaselineList of "shop"`
	for name, tc := range map[string]struct {
		graph     []v1alpha1.ComponentDependencies
		namespace string
		want      []string
	}{
		"no graph":                        {nil, "shop", []string{environments}},
		"a graph":                         {[]v1alpha1.ComponentDependencies{needs("db", "web")}, "shop", []string{environments, baselines}},
		"a namespace without Environment": {[]v1alpha1.ComponentDependencies{needs("db", "web")}, "elsewhere", []string{environments}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Environment.Spec.Dependencies = tc.graph
			src, reader := c.cached()
			if _, err := src.FindUnready(t.Context(), tc.namespace, c.BaselineName("web")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, reader.asked); diff != "" {
				t.Errorf("the lists (-want +got):\n%s", diff)
			}
		})
	}
	src, reader := newCluster(t).cached()
	src.Snapshot = func() *guards.Snapshot { return nil }
	if _, err := src.FindUnready(t.Context(), "shop", "any"); !errors.Is(err, ErrNotReady) || slices.Contains(reader.asked, environments) {
		t.Errorf("without guards: %v, after %v", err, reader.asked)
	}
}
