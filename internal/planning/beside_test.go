// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestWhatIsNotReadyBesideAnObject(t *testing.T) {
	needs := func(component string, on ...string) v1alpha1.ComponentDependencies {
		return v1alpha1.ComponentDependencies{Component: component, DependsOn: on}
	}
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
			got, err := FindUnready(t.Context(), c.live(), "shop", c.BaselineName("web"), epoch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what is not ready differs (-want +got):\n%s", diff)
			}
		})
	}
}
